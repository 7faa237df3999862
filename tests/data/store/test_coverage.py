from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import NODE_KEYS, Column, MetricSet
from crosswind.data.schema.occupancy import Allocation, Source
from crosswind.data.store.coverage import coverages
from crosswind.data.store.store import Store

COLLECTOR = MetricSet("collector", "", (*NODE_KEYS, Column("up", "")))
WHOLE = Allocation("7", "n1", "n1.lab", Source.PROLOG, started_ns=1000, ended_ns=2000)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def sweep(store: Store, *times: int, node: str = "n1.lab") -> None:
    every = [time for time in times for _ in range(2)]
    devices = ["cpu", "loop"] * len(times)
    store.lake.append(node[:2], to_table(COLLECTOR, {"ts_ns": every, "node": [node] * len(every), "device": devices}))


def test_a_node_swept_all_the_while_is_covered(store: Store) -> None:
    sweep(store, *range(500, 2500, 10))
    assert coverages(store, [WHOLE]) == [1.0]


def test_a_late_sweep_leaves_no_gap(store: Store) -> None:
    sweep(store, *(time for time in range(1000, 2000, 10) if time not in (1500, 1510)))
    assert coverages(store, [WHOLE]) == [1.0]


def test_an_outage_of_the_agent_is_not_covered(store: Store) -> None:
    sweep(store, *(time for time in range(1000, 2000, 10) if not 1200 < time < 1700))
    assert coverages(store, [WHOLE]) == [pytest.approx(0.5)]


def test_an_agent_that_came_late_and_went_early_covers_what_lies_between(store: Store) -> None:
    sweep(store, *range(1500, 1810, 10))
    assert coverages(store, [WHOLE]) == [pytest.approx(0.3)]


def test_a_running_job_is_covered_until_now(store: Store) -> None:
    sweep(store, *range(1000, 1500, 10))
    assert coverages(store, [replace(WHOLE, ended_ns=None)], now_ns=1500) == [1.0]
    assert coverages(store, [replace(WHOLE, ended_ns=None)], now_ns=3000) == [pytest.approx(0.245)]


def test_every_node_is_measured_by_its_own_sweeps(store: Store) -> None:
    sweep(store, *range(1000, 2000, 10))
    sweep(store, *range(1000, 1500, 20), node="n2.lab")
    unseen = replace(WHOLE, sampled_as="n3.lab")
    assert coverages(store, [replace(WHOLE, sampled_as="n2.lab"), unseen, WHOLE]) == [pytest.approx(0.48), 0.0, 1.0]


def test_an_unknown_coverage_is_none_and_without_any_sweep_nothing_is_covered(store: Store) -> None:
    assert coverages(store, [WHOLE, replace(WHOLE, started_ns=None)]) == [0.0, None]
    sweep(store, 1500)
    assert coverages(store, [WHOLE]) == [None]
