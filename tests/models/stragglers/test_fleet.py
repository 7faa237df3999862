from pathlib import Path

import numpy as np
import pytest
from tests.models.stragglers.made_up_fleet import BEGIN_NS, HOUR_NS, drawn_nodes, store_fleet

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.answers.stragglers import ComparisonBasis, PeerKind
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import NODE_KEYS, Column, MetricSet
from crosswind.data.schema.occupancy import Placement, Source
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.models.stragglers.fleet import fleet_ranking
from crosswind.models.stragglers.observed import local_times

RUNS, SLOW = 80, 3
MEMORY = MetricSet("memory", "Memory.", (*NODE_KEYS, Column("free_bytes", "free", unit="By")))


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 runs on 4 of 12 nodes each, of which n3 takes 1.2 times as long."""
    home = tmp_path_factory.mktemp("fleet")
    store_fleet(home, drawn_nodes(RUNS, 4, 12), {SLOW: np.log(1.2)})
    return home


@pytest.fixture(scope="module")
def unwatched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, but no rank recorded how long it waited."""
    home = tmp_path_factory.mktemp("unwatched")
    store_fleet(home, drawn_nodes(300, 4, 12), {SLOW: np.log(4.0)}, waits=False)
    return home


def test_the_slow_node_is_named_from_the_steps_of_its_runs(fleet: Path) -> None:
    with Store.open(fleet) as store:
        ranking = fleet_ranking(store)
    assert [(component.kind, component.name) for component in ranking.named] == [(PeerKind.NODE, f"n{SLOW}")]
    assert ranking.named[0].ratio == pytest.approx(1.2, rel=0.06)
    assert ranking.noise_ratio == pytest.approx(0.05, abs=0.015)
    assert (ranking.runs, ranking.compared_runs, ranking.warnings) == (RUNS, RUNS, ())


def test_a_boot_that_samples_tell_starts_anew(fleet: Path, tmp_path: Path) -> None:
    home = tmp_path / "booted"
    store_fleet(home, drawn_nodes(RUNS, 4, 12), {SLOW: np.log(1.2)})
    boots = [(BEGIN_NS - HOUR_NS, "a"), (BEGIN_NS + 70 * HOUR_NS, "b")]
    rows = {"ts_ns": [at for at, _ in boots], "node": [f"n{SLOW}"] * 2, "boot_id": [boot for _, boot in boots]}
    with Store.open(home) as store:
        store.lake.append("boots", to_table(MEMORY, rows))
        ranking = fleet_ranking(store)
    [node] = [component for component in ranking.ranked if component.name == f"n{SLOW}"]
    assert (node.since, node.runs < 8, node.was_ratio) == ("boot", True, pytest.approx(1.2, rel=0.06))


def test_without_waiting_nodes_are_told_by_run_times(unwatched: Path) -> None:
    with Store.open(unwatched) as store:
        ranking = fleet_ranking(store)
    assert (ranking.compared_runs, ranking.timed_runs) == (0, 300)
    assert [component.name for component in ranking.named] == [f"n{SLOW}"]
    assert ranking.named[0].basis is ComparisonBasis.RUN_TIMES
    assert "watch the model" in ranking.warnings[0]
    assert "share the blame" in ranking.warnings[1]


def test_devices_come_from_placements(fleet: Path, tmp_path: Path) -> None:
    home = tmp_path / "gpus"
    store_fleet(home, [[1, 2]], {})
    with Store.open(home) as store:
        with store.catalog.write() as session:
            placed = {"node": "n1", "pid": 100, "start_ticks": 1, "sampled_as": "n1", "run_id": "r0", "rank": 0}
            session.places.merge(Placement(source=Source.PROBE, gpus=("GPU-1",), **placed))
        times = local_times(store, _runs(store))
    assert times.set_index("rank")["device"].where(lambda one: one.notna(), None).to_dict() == {0: "GPU-1", 1: None}


def _runs(store: Store) -> list[Run]:
    with store.catalog.read() as session:
        return session.runs.find(limit=10)


def test_another_system_or_workload_has_nothing_and_says_so(fleet: Path) -> None:
    with Store.open(fleet) as store:
        ranking = fleet_ranking(store, "elsewhere")
    assert (ranking.ranked, ranking.runs) == ((), 0)
    assert ranking.warnings == ("no run is stored: crosswind run -- CMD records one",)


def test_one_run_on_one_node_tells_what_is_missing(tmp_path: Path) -> None:
    store_fleet(tmp_path, [[1, 1]], {})
    with Store.open(tmp_path) as store:
        ranking = fleet_ranking(store)
    assert ranking.ranked == ()
    assert "runs of two nodes or more" in ranking.warnings[0]
    assert ranking.warnings[1] == "no node was in two runs that can be compared: nothing is known of any"


def test_a_run_of_which_one_rank_is_missing_is_still_compared(fleet: Path, tmp_path: Path) -> None:
    store_fleet(tmp_path, drawn_nodes(RUNS, 3, 12), {SLOW: np.log(1.2)})
    with Store.open(tmp_path) as store:
        with store.catalog.write() as session:
            session.runs.merge(Run("r0", "bert", "lab", RunState.COMPLETED, 4))
        assert fleet_ranking(store).compared_runs == RUNS


@pytest.mark.parametrize("runs", [0, -1, 100_001])
def test_numbers_of_runs_that_cannot_be_are_refused(fleet: Path, runs: int) -> None:
    with Store.open(fleet) as store, pytest.raises(InvalidInputError, match=f"runs {runs}: expected 1 to 100000"):
        fleet_ranking(store, runs=runs)
