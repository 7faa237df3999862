"""Nodes of a store, by the samples of their agents that it holds: real sweeps, and rows with exact numbers."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.answers.nodes import DownSource, NodeState
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.metric import NODE_KEYS, Column, MetricSet, Sample, Scalar, with_node_keys
from crosswind.data.schema.part import Part
from crosswind.data.store.fleet import fleet
from crosswind.data.store.store import Store
from crosswind.ingest.agent.loop import Agent
from crosswind.ingest.agent.self_metrics import AGENT, PAGE_BYTES
from crosswind.ingest.agent.sweep import COLLECTOR, Sweep, timed
from crosswind.ingest.load.load import load_spool
from crosswind.ingest.spool.spool import SpoolWriter

SECOND = 1_000_000_000
START_NS = 1_767_323_045_000_000_006
HOUR_AGO_NS = time.time_ns() - 3600 * SECOND
AGENTS, SOURCES = with_node_keys(AGENT), with_node_keys(COLLECTOR)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as store:
        yield store


@dataclass(frozen=True)
class Clockwork:
    """A source that answers."""

    metric_set: ClassVar[MetricSet] = MetricSet("clockwork", "turns", (Column("turns", "count"),))

    def available(self) -> bool:
        return True

    def read(self) -> Iterator[Sample]:
        yield Sample("a", {"turns": 1})


@dataclass(frozen=True)
class Broken(Clockwork):
    """A source that does not."""

    metric_set: ClassVar[MetricSet] = MetricSet("broken", "turns", (Column("turns", "count"),))

    def read(self) -> Iterator[Sample]:
        raise UnavailableError("/sys/spring: No such file or directory")


def sweep(spool: Path, node: str, *latenesses: float, source: type[Clockwork] = Clockwork) -> None:
    """An agent's sweeps of a node, one for each lateness."""
    with SpoolWriter(spool, f"agent.{node}") as writer:
        sources = [timed(Clockwork()), *([timed(source())] if source is not Clockwork else [])]
        agent = Agent(Sweep(sources, writer, node=node, boot_id="b1"), writer, interval_seconds=1.0)
        for lateness in latenesses:
            agent.sweep(lateness_seconds=lateness)


def agent_rows(store: Store, node: str, **columns: Sequence[Scalar]) -> None:
    """Rows of one boot of a node, a second apart; processor time tells how many."""
    count = len(columns["cpu_seconds_total"])
    times = [START_NS + second * SECOND for second in range(count)]
    keys = {"node": [node] * count, "device": ["agent"] * count, "boot_id": ["b1"] * count}
    store.lake.append(f"agent-{node}", to_table(AGENTS, {"ts_ns": times, "mono_ns": times, **keys, **columns}))


def test_nodes_are_listed_by_name_with_their_sweeps_and_sources(store: Store, tmp_path: Path) -> None:
    begin_ns = time.time_ns()
    sweep(tmp_path / "n2", "n2", 0.25, 0.25, source=Broken)
    sweep(tmp_path / "n1", "n1", 0.001, 0.001, 0.001)
    end_ns = time.time_ns()
    for node in ("n1", "n2"):
        assert load_spool(store, tmp_path / node).problems == []
    first, second = fleet(store, HOUR_AGO_NS)
    assert (first.node, first.sweeps, first.lateness_p99_seconds) == ("n1", 3, 0.001)
    assert (second.node, second.sweeps, second.lateness_p99_seconds) == ("n2", 2, 0.25)
    assert (first.sources_up, first.sources_down) == (("clockwork",), ())
    reason = "UnavailableError: /sys/spring: No such file or directory"
    assert (second.sources_up, second.sources_down) == (("clockwork",), (DownSource("broken", reason),))
    assert begin_ns <= second.last_sweep_ns < first.last_sweep_ns <= end_ns
    assert (first.missed_ticks, first.lost_sweeps) == (0, 0)
    assert first.cpu_ratio is not None
    assert 0 < first.cpu_ratio < 4  # of threads that share the processor time of this process
    assert first.resident_bytes is not None
    assert first.resident_bytes > 1_000_000


def test_a_node_that_stopped_keeps_its_last_sweep_until_that_is_too_long_ago(store: Store, tmp_path: Path) -> None:
    sweep(tmp_path / "spool", "stopped", 0.0)
    stopped_ns = time.time_ns()
    sweep(tmp_path / "spool", "running", 0.0)
    load_spool(store, tmp_path / "spool")
    running, stopped = fleet(store, HOUR_AGO_NS)
    assert stopped.last_sweep_ns <= stopped_ns < running.last_sweep_ns
    assert [state.node for state in fleet(store, stopped_ns)] == ["running"]
    assert fleet(store, running.last_sweep_ns + 1) == ()


def test_a_source_is_as_it_was_when_last_looked_at(store: Store) -> None:
    rows = {"ts_ns": [1, 2, 1, 2], "node": ["n1"] * 4, "device": ["ipmi", "ipmi", "nfs", "nfs"]}
    rows |= {"up": [0, 1, 1, 0], "reason": ["busy", None, None, "timed out"]}
    store.lake.append("p", to_table(SOURCES, rows))
    agent_rows(store, "n1", cpu_seconds_total=[1.0])
    [state] = fleet(store, 0)
    assert (state.sources_up, state.sources_down) == (("ipmi",), (DownSource("nfs", "timed out"),))


def test_costs_and_losses_are_growth_within_the_time_asked_for(store: Store) -> None:
    agent_rows(
        store,
        "n1",
        cpu_seconds_total=[5.0, 5.5, 5.51, 5.53],
        missed_ticks_total=[9, 9, 10, 12],
        lost_sweeps_total=[4, 4, 4, 5],
        resident_bytes=[100, 100, 100, 300],
        lateness_seconds=[9.0, 0.001, 0.002, 0.003],
        clock_error_max_seconds=[0.5, 0.5, 0.5, 0.25],
        clock_synchronized=[1, 1, 1, 0],
    )
    [state] = fleet(store, START_NS + SECOND)
    assert state == NodeState(
        "n1",
        last_sweep_ns=START_NS + 3 * SECOND,
        sweeps=3,
        sources_up=(),
        sources_down=(),
        missed_ticks=3,
        lost_sweeps=1,
        lateness_p99_seconds=pytest.approx(0.00298),
        cpu_ratio=pytest.approx(0.03 / 2),
        resident_bytes=300 * PAGE_BYTES,
        clock_error_seconds=0.25,
        clock_synchronized=False,
    )


def test_an_agent_that_began_anew_costs_no_more_and_no_less(store: Store) -> None:
    before, after = [100.0 + 0.01 * n for n in range(10)], [0.3 + 0.01 * n for n in range(10)]
    agent_rows(store, "n1", cpu_seconds_total=before + after, missed_ticks_total=[7] * 10 + [0] * 10)
    [state] = fleet(store, 0)
    assert state.cpu_ratio == pytest.approx(0.01)
    assert (state.missed_ticks, state.lost_sweeps) == (0, None)


@pytest.mark.parametrize("turns", ["ABABABABABAB", "ABBAABBABAAB", "BAABABBAABAB"])
def test_two_agents_on_a_node_are_not_taken_for_one_that_grows(store: Store, turns: str) -> None:
    shown = {"A": (100.0, 5), "B": (1.0, 0)}
    used = [shown[turn][0] + 0.01 * row for row, turn in enumerate(turns)]
    missed = [shown[turn][1] for turn in turns]
    agent_rows(store, "n1", cpu_seconds_total=used, missed_ticks_total=missed)
    [state] = fleet(store, 0)
    assert (state.sweeps, state.cpu_ratio, state.missed_ticks) == (12, None, None)


def test_the_fall_of_one_node_takes_nothing_from_the_next(store: Store) -> None:
    agent_rows(store, "n1", cpu_seconds_total=[5.0, 5.25, 0.25])
    agent_rows(store, "n2", cpu_seconds_total=[5.0, 5.25])
    assert [state.cpu_ratio for state in fleet(store, 0)] == [None, 0.25]


def test_what_one_sweep_cannot_tell_is_missing(store: Store) -> None:
    agent_rows(store, "n1", cpu_seconds_total=[5.0])
    assert fleet(store, 0) == (NodeState("n1", START_NS, 1, (), (), *[None] * 7),)


def test_columns_that_no_agent_reported_are_missing(store: Store) -> None:
    for name, source in (("agent", "agent"), ("collector", "cpu")):
        keys = {"ts_ns": [1, 2], "node": ["n1"] * 2, "device": [source] * 2}
        store.lake.append(name, to_table(MetricSet(name, "", NODE_KEYS), keys))
    assert fleet(store, 0) == (NodeState("n1", 2, 2, (), (DownSource("cpu", None),), *[None] * 7),)


def test_nodes_come_in_parts_by_name(store: Store) -> None:
    for node in ("n3", "n1", "n2"):
        agent_rows(store, node, cpu_seconds_total=[1.0])
    assert [state.node for state in fleet(store, 0, Part(2))] == ["n1", "n2"]
    assert [state.node for state in fleet(store, 0, Part(2, after=("n2",)))] == ["n3"]
    assert fleet(store, 0, Part(2, after=("n3",))) == ()


def test_a_store_without_samples_has_no_nodes(store: Store) -> None:
    assert fleet(store, 0) == ()
