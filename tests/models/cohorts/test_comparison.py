"""Comparison of saved cohorts: a known difference is found, luck is not, and others' runs are nobody's."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.data.schema.access import RowRule
from crosswind.data.schema.answers.cohorts import FeatureKind
from crosswind.data.schema.part import Part
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.saved_cohort import RunConditions, SavedCohort
from crosswind.data.store.store import Store
from crosswind.models.cohorts.comparison import compare_cohort

SECOND = 1_000_000_000
RUNS = 60
MEMBERS = tuple(f"r{number:02}" for number in range(0, RUNS, 3))


def runs(seed: int = 0) -> list[Run]:
    """Runs of one workload: every third is on n2 and takes 20 % longer; batch, kind and torch go by lot."""
    luck = random.Random(seed)
    return [_run(number, luck) for number in range(RUNS)]


def _run(number: int, luck: random.Random) -> Run:
    is_member = number % 3 == 0
    seconds = (120 if is_member else 100) + luck.gauss(0, 2)
    started_ns = (1_000_000 + number * 1000) * SECOND
    return Run(
        *(f"r{number:02}", "gpt", "lab", RunState.COMPLETED),
        world_size=8,
        configuration={"batch": luck.choice([8, 16, 32]), "kind": luck.choice(["adam", "sgd"])},
        nodes=("n1", "n2" if is_member else "n3"),
        started_ns=started_ns,
        ended_ns=started_ns + round(seconds * SECOND),
        software={"torch": luck.choice(["2.0", "2.1"])},
        user="ann",
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        with opened.catalog.write() as session:
            session.runs.put_all(runs())
        yield opened


def chosen(run_ids: tuple[str, ...] = MEMBERS) -> SavedCohort:
    return SavedCohort("c1", "slow ones", 1, run_ids)


def test_what_differs_ranks_first_and_luck_does_not(store: Store) -> None:
    comparison = compare_cohort(store, chosen())
    assert (comparison.cohort_runs, comparison.other_runs) == (20, 40)
    differing = {one.name for one in comparison.features if one.differs}
    assert differing == {"run_seconds", "node=n2", "node=n3"}
    time = next(one for one in comparison.features if one.name == "run_seconds")
    assert (time.kind, time.is_share) == (FeatureKind.OUTCOME, False)
    assert time.cohort_median == pytest.approx(120, abs=2)
    assert time.other_median == pytest.approx(100, abs=2)
    assert 0.6 < time.rho_low <= time.rho <= time.rho_high <= 1
    there = next(one for one in comparison.features if one.name == "node=n2")
    assert (there.is_share, there.cohort_median, there.other_median) == (True, 1.0, 0.0)
    assert "batch" in {one.name for one in comparison.features}
    assert "node=n1" not in {one.name for one in comparison.features}  # of all runs
    assert any("evidence" in warning for warning in comparison.warnings)


def test_of_runs_that_were_chosen_by_lot_nothing_differs(store: Store) -> None:
    lot = tuple(random.Random(5).sample([f"r{number:02}" for number in range(RUNS)], 20))
    assert [one.name for one in compare_cohort(store, chosen(lot)).features if one.differs] == []


def test_drift_is_taken_out_on_request(store: Store) -> None:
    first_third = chosen(tuple(f"r{number:02}" for number in range(20)))
    drifting = [
        replace(run, started_ns=(run.started_ns or 0), ended_ns=(run.started_ns or 0) + (100 + number) * SECOND)
        for number, run in enumerate(runs())
    ]
    with store.catalog.write() as session:
        session.runs.put_all(drifting)

    def differing(*, drift: bool) -> set[str]:
        return {one.name for one in compare_cohort(store, first_third, drift=drift).features if one.differs}

    assert "run_seconds" in differing(drift=False)
    assert "run_seconds" not in differing(drift=True)


def test_a_cohort_of_conditions_takes_in_runs_that_come_later(store: Store) -> None:
    cohort = SavedCohort("c2", "late", 1, conditions=RunConditions(workload="gpt", from_ns=1_040_000 * SECOND))
    with store.catalog.read() as session:
        assert len(session.cohorts.members(cohort, Part(100, descending=True))) == 20
    later = replace(runs()[0], run_id="later", started_ns=2_000_000 * SECOND, ended_ns=2_000_100 * SECOND)
    with store.catalog.write() as session:
        session.runs.put_all([later])
    with store.catalog.read() as session:
        assert session.cohorts.members(cohort, Part(100, descending=True))[0].run_id == "later"
        assert later not in session.cohorts.others(cohort, [later], limit=100)


def test_too_few_runs_are_said_to_be_too_few(store: Store) -> None:
    few = compare_cohort(store, chosen(MEMBERS[:2]))
    assert few.features == ()
    assert few.warnings == (
        "2 runs of the cohort and 58 others have ended: expected 3 or more of each, and 20 together",
    )


def test_others_see_a_shared_cohort_by_their_own_runs(store: Store) -> None:
    mine, bob = store.seen_by(RowRule(users=frozenset({"ann"}))), store.seen_by(RowRule(users=frozenset({"bob"})))
    with mine.catalog.write() as session:
        session.cohorts.add(chosen())
    with bob.catalog.read() as session:
        assert session.cohorts.find(Part(9, descending=True)) == []
    with mine.catalog.write() as session:
        session.cohorts.share("c1", shared=True)
    with bob.catalog.read() as session:
        assert [one.cohort_id for one in session.cohorts.find(Part(9, descending=True))] == ["c1"]
        assert session.cohorts.members(session.cohorts.get("c1"), limit=9) == []
    assert compare_cohort(bob, chosen()).cohort_runs == 0
