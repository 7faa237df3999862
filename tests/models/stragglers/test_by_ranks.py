import numpy as np
import pandas as pd
import pytest
from tests.models.stragglers.made_up_fleet import BEGIN_NS, HOUR_NS, drawn_nodes, fleet_table

from crosswind.data.schema.answers.stragglers import PeerKind, RankedPeer
from crosswind.models.stragglers.by_ranks import ranked_by_ranks

RUNS, EACH, FLEET = 150, 4, 20


def ranked(
    table: pd.DataFrame, boots: list[int] | None = None, switches: dict[str, str] | None = None
) -> list[RankedPeer]:
    codes = np.zeros(len(table), np.int64) if boots is None else np.array(boots)
    return ranked_by_ranks(table, codes, switches or {})[0]


def named(ranking: list[RankedPeer]) -> list[tuple[str, str]]:
    return [(str(component.kind), component.name) for component in ranking if component.named]


def of_node(ranking: list[RankedPeer], name: str) -> RankedPeer:
    return next(component for component in ranking if component.kind is PeerKind.NODE and component.name == name)


def test_the_slow_node_is_named_and_no_other() -> None:
    ranking = ranked(fleet_table(drawn_nodes(RUNS, EACH, FLEET), {7: 0.2}))
    assert named(ranking) == [("node", "n7")]
    slow = of_node(ranking, "n7")
    assert slow.ratio == pytest.approx(np.exp(0.2), rel=0.05)  # seen in 30 runs of noise 5 %, shrunken a little
    assert slow.low_ratio < np.exp(0.2) < slow.high_ratio
    assert (slow.since, slow.was_ratio) == ("first run", None)


@pytest.mark.parametrize("seed", range(10))
def test_of_equal_nodes_none_is_named(seed: int) -> None:
    assert named(ranked(fleet_table(drawn_nodes(RUNS, EACH, FLEET, seed=seed), {}, seed=seed))) == []  # seeded


def test_a_slow_place_is_not_blamed_on_its_nodes() -> None:
    table = fleet_table(drawn_nodes(RUNS, EACH, FLEET), {})
    slow = table.assign(log_local=table["log_local"] + 0.3 * (table["rank"] == 0))
    ranking = ranked(slow)
    assert named(ranking) == [("rank place", "bert, rank 0")]


def test_a_node_that_became_slow_is_told_since_then() -> None:
    table = fleet_table(drawn_nodes(300, EACH, FLEET), {})
    since = BEGIN_NS + 200 * HOUR_NS
    is_slow = (table["node"] == "n3") & (table["started_ns"] >= since)
    ranking = ranked(table.assign(log_local=table["log_local"] + 0.25 * is_slow))
    assert named(ranking) == [("node", "n3")]
    node = of_node(ranking, "n3")
    first = int(table.loc[is_slow, "started_ns"].min())
    assert (node.since, node.since_ns) == ("change", pytest.approx(first, abs=10 * HOUR_NS))  # its run of every 5 hours
    assert node.was_ratio == pytest.approx(1.0, abs=0.04)
    assert node.ratio == pytest.approx(np.exp(0.25), rel=0.06)


def test_a_repaired_node_is_named_no_more() -> None:
    table = fleet_table(drawn_nodes(300, EACH, FLEET), {})
    was_slow = (table["node"] == "n3") & (table["started_ns"] < BEGIN_NS + 200 * HOUR_NS)
    ranking = ranked(table.assign(log_local=table["log_local"] + 0.25 * was_slow))
    assert named(ranking) == []
    assert of_node(ranking, "n3").was_ratio == pytest.approx(np.exp(0.25), rel=0.06)


def test_a_boot_starts_anew() -> None:
    table = fleet_table(drawn_nodes(300, EACH, FLEET), {3: 0.25})
    late = table["started_ns"] >= BEGIN_NS + 290 * HOUR_NS
    boots = ((table["node"] == "n3") & late).astype(int).tolist()
    rebooted = of_node(ranked(table, boots), "n3")
    assert (rebooted.since, rebooted.runs) == ("boot", int(((table["node"] == "n3") & late).sum()))
    assert rebooted.since_ns == int(table.loc[(table["node"] == "n3") & late, "started_ns"].min())
    assert rebooted.was_ratio == pytest.approx(np.exp(0.25), rel=0.06)


def test_devices_are_compared_within_their_node() -> None:
    nodes = [[node, node, node, node] for node in (1, 2)] * 60
    table = fleet_table(nodes, {2: 0.5})
    device = "GPU-" + table["node"] + "-" + table["rank"].astype(str)
    turned = np.random.default_rng(0).permuted(table["rank"].to_numpy().reshape(-1, 4), axis=1).ravel()
    device = "GPU-" + table["node"] + "-" + pd.Series(turned).astype(str)
    slow = table.assign(device=device, log_local=table["log_local"] + 0.2 * (device == "GPU-n1-2"))
    assert named(ranked(slow)) == [("device", "n1 GPU-n1-2")]


def test_a_slow_switch_is_told_apart_from_its_nodes() -> None:
    switches = {f"n{number}": f"s{number // 5}" for number in range(40)}
    behind = dict.fromkeys(range(10, 15), 0.2)
    ranking = ranked(fleet_table(drawn_nodes(1000, EACH, 40), behind), switches=switches)
    worst = max(
        (component for component in ranking if component.kind is PeerKind.SWITCH), key=lambda component: component.ratio
    )
    assert (worst.name, worst.named) == ("s2", True)


def test_two_nodes_that_always_run_together_are_told_by_half_and_not_surely() -> None:
    ranking = ranked(fleet_table([[1, 2]] * 50 + [[3, 4]] * 50, {2: 0.1}))
    assert named(ranking) == []  # place and node cannot be distinguished


def test_one_node_alone_tells_nothing() -> None:
    assert ranked(fleet_table([[1, 1, 1]] * 20, {})) == []


def test_ranks_of_one_node_count_once() -> None:
    nodes = [[a, a, a, a, b, b, b, b] for a, b in drawn_nodes(30, 2, 6)]
    table = fleet_table(nodes, {})
    shaken = np.random.default_rng(5).normal(0, 0.3, (30, 6))  # what disturbs a node in a run, all of its ranks
    moved = table.assign(log_local=table["log_local"] + shaken[table["run"], table["number"]])
    assert named(ranked(moved)) == []
