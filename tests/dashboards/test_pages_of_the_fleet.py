"""Contents of the pages about nodes, over stores whose truth is known."""

from collections.abc import Iterator

import numpy as np
import pytest
from tests.dashboards.test_pages_of_many_runs import client, page
from tests.models.preflight.stored_checks import store_checks
from tests.models.stragglers.made_up_fleet import BEGIN_NS, SECOND_NS, drawn_nodes, store_fleet

from crosswind.dashboards.pages.fleet import stragglers
from crosswind.dashboards.pages.page import PageQuery
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import with_node_keys
from crosswind.data.store.store import Store
from crosswind.ingest.agent.self_metrics import AGENT
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


def swept(store: Store, node: str, minutes: list[int], **counters: list[float]) -> None:
    """Sweeps of a node's agent, a minute apart."""
    columns = {
        "ts_ns": [BEGIN_NS + minute * 60 * SECOND_NS for minute in minutes],
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
