"""Contents of the pages about nodes, over stores whose truth is known."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.dashboards.test_pages_of_many_runs import client, page
from tests.models.preflight.stored_checks import store_checks
from tests.models.stragglers.made_up_fleet import BEGIN_NS, HOUR_NS, SECOND_NS, drawn_nodes, store_fleet

from crosswind.dashboards.pages.fleet import data, energy, links, stragglers
from crosswind.dashboards.pages.page import PageQuery
from crosswind.dashboards.pages.render import Address, render
from crosswind.dashboards.pages.runs import run
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.access import RowRule
from crosswind.data.schema.facts import NONE_GIVEN, Facts
from crosswind.data.schema.metric import with_node_keys
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.store.store import Store
from crosswind.ingest.agent.self_metrics import AGENT
from crosswind.ingest.collectors.network import NETWORK
from crosswind.ingest.collectors.nvml import GPU
from crosswind.models.stragglers.fleet import recent_ranking

TOPOLOGY = "SwitchName=leaf0 Nodes=n[0-5]\nSwitchName=leaf1 Nodes=n[6-11]\nSwitchName=top Switches=leaf[0-1]\n"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """80 runs, an hour apart, on 4 of 12 nodes of two switches; n3 takes 1.2 times as long and has a gap in samples."""
    home = tmp_path_factory.mktemp("nodes")
    store_fleet(home, drawn_nodes(80, 4, 12), {3: np.log(1.2)})
    (home / "topology.conf").write_text(TOPOLOGY)
    with Store.open(home) as store:
        store_checks(store, checks=2, nodes=4, slow={1: "n3"})
        swept(store, "n3", [*range(70 * 60), *range(76 * 60, 80 * 60)])
        swept(store, "n4", [*range(80 * 60)])
        yield store


def swept(store: Store, node: str, minutes: list[int], *, from_ns: int = BEGIN_NS, **counters: list[float]) -> None:
    """Sweeps of a node's agent at these minutes."""
    columns = {
        "ts_ns": [from_ns + minute * 60 * SECOND_NS for minute in minutes],
        "node": [node] * len(minutes),
        "boot_id": ["b"] * len(minutes),
        "cpu_seconds_total": [0.006 * minute for minute in minutes],
        "missed_ticks_total": [0] * len(minutes),
        "lost_sweeps_total": [0] * len(minutes),
        "clock_error_max_seconds": [0.002] * len(minutes),
        "clock_synchronized": [1] * len(minutes),
    }
    store.lake.append(f"agent-{node}", to_table(with_node_keys(AGENT), {**columns, **counters}))


def test_one_node_shows_its_effect_its_runs_its_checks_and_its_gaps(fleet: Store) -> None:
    shown = stragglers.view(client(fleet), PageQuery({"node": "n3"})).of_node
    assert shown is not None
    assert shown.history is not None
    assert shown.sentence.startswith("Node n3 takes 1.1")
    assert shown.sentence.endswith("the time of its peers; 1 gap in its samples.")
    assert (len(shown.history.runs), shown.switch) == (20, "leaf0")
    assert [gap.seconds for gap in shown.history.gaps] == [6 * 3600 + 60]
    assert [(row.measure, row.value, row.before) for row in shown.checks] == [("gemm", 0.5e12 * 1.008, 1e12 * 1.006)]
    [chart] = shown.charts
    assert "1 gap" in chart.sentence
    html = page(fleet, "/stragglers?node=n3")
    assert '<code id="copy-exclude">--exclude=n3</code>' in html
    assert html.count('data-label="Run"><a class="row-link" href="./runs/r') == 20
    assert "in the newest 7 days that have data, up to 2026-01-04" in html


def test_a_node_of_which_nothing_is_stored_says_so(fleet: Store) -> None:
    assert "Node n99 was in no run that can be compared, and nothing of it is stored." in page(
        fleet, "/stragglers?node=n99"
    )


def test_the_map_has_the_nodes_of_each_switch_with_their_place(fleet: Store) -> None:
    shown = stragglers.view(client(fleet), PageQuery())
    assert [switch.name for switch in shown.switches] == ["leaf0", "leaf1"]
    assert [node.name for node in shown.switches[1].nodes] == ["n6", "n7", "n8", "n9", "n10", "n11"]
    html = page(fleet, "/stragglers")
    assert html.count('class="tile slower" href="./stragglers?node=n3"') == 1
    assert html.count('class="tile ') == 12


def test_a_period_without_runs_leaves_nothing_to_compare(fleet: Store) -> None:
    assert stragglers.view(client(fleet), PageQuery({"period": "1d"})).scope.runs == 0


def test_a_period_narrows_the_ranking(fleet: Store) -> None:
    assert recent_ranking(fleet, None, None, 20_000).runs == 80
    assert recent_ranking(fleet, None, None, 1).runs == 0


@pytest.fixture
def now(tmp_path: Path) -> Iterator[Store]:
    """Four nodes of the last three hours: one is silent for two, one was away for an hour, one loses rows."""
    from_ns = time.time_ns() // (60 * SECOND_NS) * 60 * SECOND_NS - 180 * 60 * SECOND_NS
    with Store.open(tmp_path / "now") as store:
        swept(store, "quiet", [*range(60)], from_ns=from_ns)
        swept(store, "away", [*range(60), *range(120, 181)], from_ns=from_ns)
        swept(store, "loses", [*range(181)], from_ns=from_ns, dropped_rows_total=[3 + n // 60 for n in range(181)])
        swept(store, "whole", [*range(181)], from_ns=from_ns)
        with store.catalog.write() as session:
            session.runs.merge(Run("r", "gpt", "lab", RunState.COMPLETED, 1, started_ns=from_ns + HOUR_NS))
            session.ranks.merge(Rank("r", 0, "whole", 1, from_ns, clock_offset_ns=-4_000_000))
        yield store


def test_nodes_that_stopped_sending_lead_the_data_page(now: Store) -> None:
    shown = data.view(client(now), PageQuery())
    assert shown.sentence == "1 of 4 nodes sent nothing in the last hour: quiet."
    nodes = {row.health.node: row for row in shown.rows}
    assert next(iter(nodes)) == "quiet"
    assert {name: row.is_silent for name, row in nodes.items()} == {
        "quiet": True,
        "away": False,
        "loses": False,
        "whole": False,
    }
    shares = {name: row.health.share for name, row in nodes.items()}
    assert shares == pytest.approx({"quiet": 60 / 181, "away": 121 / 181, "loses": 1, "whole": 1})
    assert (nodes["loses"].health.lost, nodes["whole"].health.clock_offset_ns) == (3, 4_000_000)
    [chart] = shown.charts
    assert chart.title == "quiet was sampled in 33 % of the time"
    assert "systemctl status crosswind-agent" in page(now, "/data")


def test_the_data_page_of_an_old_store_says_when_the_last_sample_came(fleet: Store) -> None:
    shown = data.view(client(fleet), PageQuery())
    assert shown.sentence == (
        "Nothing came in the last hour from 2 nodes; the last sample is of 2026-01-04 07:59:00 UTC."
    )
    assert [row.health.node for row in shown.rows] == ["n3", "n4"]
    assert data.view(client(fleet), PageQuery({"period": "1d"})).sentence == "No node sent samples in the last day."


def test_a_store_without_samples_says_how_to_take_them(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        assert "<code>crosswind agent</code>" in page(store, "/data?example=no")


@pytest.fixture
def metered(tmp_path: Path) -> Iterator[Store]:
    """Runs of three batches whose records state joules, one that a data sheet alone tells of, and GPUs of one run."""
    with Store.open(tmp_path / "metered") as store:
        with store.catalog.write() as session:
            for number, (batch, took, joules) in enumerate([(8, 10, 900), (16, 20, 500), (32, 30, 700), (8, 12, 1100)]):
                session.runs.merge(_ended(f"r{number}", "gpt", took, {"batch": batch}, {"energy_joules": str(joules)}))
            session.runs.merge(_ended("guess", "bert", 10, {}, {}, Facts(accelerator="H100", accelerators_per_node=1)))
            session.runs.merge(_ended("dark", "bert", 10, {}, {}))
        times = [BEGIN_NS + second * SECOND_NS for second in range(10)]
        columns = {"ts_ns": times, "node": ["n0"] * 10, "device": ["GPU-1"] * 10, "boot_id": ["b"] * 10}
        used = {"utilization_ratio": [0] * 4 + [90] * 6, "name": [None] * 10}
        store.lake.append("gpu", to_table(with_node_keys(GPU), {**columns, **used}))
        yield store


def _ended(
    run_id: str,
    workload: str,
    took: int,
    configuration: dict[str, int | float | str | bool],
    tags: dict[str, str],
    facts: Facts = NONE_GIVEN,
) -> Run:
    ended = BEGIN_NS + took * SECOND_NS
    named = (run_id, workload, "lab", RunState.COMPLETED, 1, configuration)
    return Run(*named, nodes=("n0",), started_ns=BEGIN_NS, ended_ns=ended, tags=tags, facts=facts)


def test_measured_and_estimated_energy_are_kept_apart(metered: Store) -> None:
    shown = energy.view(client(metered), PageQuery())
    assert shown.sentence == "4 of 6 runs took 3.20 kJ by their meters."
    by_name = {row.workload: row for row in shown.workloads}
    assert (by_name["gpt"].measured_joules, by_name["gpt"].estimated_runs) == (3200, 0)
    bert = by_name["bert"]
    assert (bert.measured_runs, bert.estimated_runs, bert.unknown_runs) == (0, 1, 1)
    assert bert.estimated_joules == pytest.approx(700 * 10)


def test_a_run_has_measured_energy_or_an_estimate_and_its_basis(metered: Store) -> None:
    by_meter, guess, dark = (run.view(client(metered), PageQuery({}, name)) for name in ("r0", "guess", "dark"))
    assert by_meter.energy is not None
    assert (by_meter.energy.joules, by_meter.estimated_energy) == (900, None)
    assert guess.energy is None
    assert guess.estimated_energy is not None
    assert guess.estimated_energy.joules == pytest.approx(700 * 10)
    assert guess.estimated_energy.low_joules < 7000 < guess.estimated_energy.high_joules
    html = render(run.PAGE, guess, Address(root="../", path="/runs/guess"))
    assert "<dt>Energy, estimated</dt><dd>7.00 kJ" in html
    assert "estimated by the accelerator&#39;s power limit" in html
    assert "<dt>Energy, measured</dt>" in render(run.PAGE, by_meter, Address(root="../", path="/runs/r0"))
    assert dark.energy is None


def test_the_front_holds_what_no_configuration_beats_in_time_and_energy(metered: Store) -> None:
    shown = energy.view(client(metered), PageQuery({"workload": "gpt"}))
    assert [(point.configuration["batch"], point.runs, point.joules) for point in shown.front] == [
        (8, 2, 1000),
        (16, 1, 500),
    ]
    assert shown.charts[0].title == "gpt can use 50 % less energy for 82 % more time"
    html = page(metered, "/energy?workload=gpt")
    assert "as their records state it" in html
    assert "batch=32" not in html[html.index('id="front"') : html.index('id="energy"')]


def test_gpus_that_a_run_held_idle_are_listed(metered: Store) -> None:
    shown = {row.run_id: row for row in energy.view(client(metered), PageQuery()).idle}
    assert (shown["r0"].gpus, shown["r0"].idle_ratio, shown["r0"].idle_gpu_seconds) == (1, 0.4, 4.0)


def test_runs_without_any_meter_say_which_would_do(fleet: Store) -> None:
    html = page(fleet, "/energy")
    assert "No meter covered any of 80 runs." in html
    assert "<code>crosswind doctor</code>" in html


@pytest.fixture
def networked(tmp_path: Path) -> Iterator[Store]:
    """Five nodes for an hour: each drops 1 in 10 000 packets, n2 1 in 100, and the link of n4 is at a tenth."""
    with Store.open(tmp_path / "links") as store:
        for number in range(5):
            count, node = 61, f"n{number}"
            drops = 100 if number == 2 else 1
            columns = {
                "ts_ns": [BEGIN_NS + minute * 60 * SECOND_NS for minute in range(count)] * 2,
                "node": [node] * 2 * count,
                "device": ["eth0"] * count + ["lo"] * count,
                "boot_id": ["b"] * 2 * count,
                "receive_packets_total": [5000 * minute for minute in range(count)] * 2,
                "transmit_packets_total": [5000 * minute for minute in range(count)] * 2,
                "receive_drops_total": [drops * minute for minute in range(count)] * 2,
                "transmit_drops_total": [0] * 2 * count,
                "carrier_changes_total": [7] * 2 * count,
                "speed_bytes_per_second": [10 if number == 4 else 100] * 2 * count,
            }
            store.lake.append(f"network-{node}", to_table(with_node_keys(NETWORK), columns))
        yield store


def test_the_link_that_drops_more_than_its_peers_leads(networked: Store) -> None:
    shown = links.view(client(networked), PageQuery())
    assert shown.sentence == "n2 eth0 has 1 % drops, where its peers have 0.01 %."
    assert (shown.worse, shown.listed, shown.nodes) == (1, 5, 5)
    first, second = shown.rows[:2]
    assert (first.node, first.events, first.is_worse) == ("n2", 6000, True)
    assert (second.events, second.is_worse) == (60, False)
    assert {row.device for row in shown.rows} == {"eth0"}
    [slow] = shown.slow
    assert (slow.node, slow.rate / slow.median) == ("n4", pytest.approx(0.1))
    [chart] = shown.charts
    assert chart.title == "1 link loses over five times as much as the peers"
    assert page(networked, "/links").count("<tr>") == 1 + 5 + 1 + 1 + 1 + 5


def test_links_are_shown_to_those_alone_who_may_see_all_rows(networked: Store) -> None:
    mine = client(networked).seen_by(RowRule(users=frozenset({"ann"})))
    assert links.view(mine, PageQuery()).sentence.startswith("Links carry everybody's traffic")


def test_a_store_without_links_says_how_to_sample_them(fleet: Store) -> None:
    assert "No link was sampled" in page(fleet, "/links")
