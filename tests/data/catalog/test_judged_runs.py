"""Verdicts are sorted, filtered, counted and paged by the database, the same way in both."""

import pytest
from tests.data.catalog.test_run_list import assert_served, plan_of

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.catalog.verdicts import StoredFeatures
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.run_verdict import RunVerdict

MANY = 60


@pytest.fixture
def judged(catalog: Catalog) -> Catalog:
    """Runs of two workloads; every fifth has no verdict yet, and of every third the excess is unknown."""
    runs = [Run(f"r{number:02}", f"w{number % 2}", "lab", RunState.COMPLETED, started_ns=1) for number in range(MANY)]
    with catalog.write() as session:
        session.runs.put_all(runs)
        made = [StoredFeatures(RunVerdict(run.run_id, steps=7), 1, "form", None, 0) for run in runs]
        session.verdicts.put_features(made, {run.run_id: [] for run in runs})
        for number, run in enumerate(runs):
            if number % 5:
                session.verdicts.put_verdict(verdict_of(number, run.run_id), "{}", revision=(1, 0), allowed=0)
    return catalog


def verdict_of(number: int, run_id: str) -> RunVerdict:
    excess = None if number % 3 == 0 else float(number % 7)
    return RunVerdict(run_id, verdict="slow" if number % 4 == 0 else "normal", excess_seconds=excess)


def test_the_largest_excess_comes_first_and_the_unknown_last(judged: Catalog) -> None:
    with judged.read() as session:
        rows = session.judged_runs.find(limit=MANY)
    valued = [row.excess_seconds for row in rows if row.excess_seconds is not None]
    assert valued == sorted(valued, reverse=True)
    assert [row.excess_seconds for row in rows] == valued + [None] * (MANY - len(valued))
    assert len(valued) == sum(bool(number % 5 and number % 3) for number in range(MANY))


@pytest.mark.parametrize("by", ["verdict", "cause", "excess_seconds"])
@pytest.mark.parametrize("wanted", [RunFilter(), RunFilter(workload="w1", state=RunState.COMPLETED)])
def test_parts_join_without_gap_or_repeat(judged: Catalog, by: str, wanted: RunFilter) -> None:
    seen: list[RunVerdict] = []
    with judged.read() as session:
        whole = session.judged_runs.find(wanted, by=by, limit=MANY)
        while part := session.judged_runs.find(wanted, by=by, after=place(seen, by), limit=7):
            seen += part
    assert seen == whole
    assert len(whole) == (MANY if wanted.workload is None else MANY // 2)


def place(seen: list[RunVerdict], by: str) -> tuple[str | float | None, str] | None:
    return (getattr(seen[-1], by), seen[-1].run_id) if seen else None


def test_verdicts_are_counted_and_filtered(judged: Catalog) -> None:
    with judged.read() as session:
        counts = session.judged_runs.counts()
        slow = session.judged_runs.find(verdicts=["slow"], limit=MANY)
        of_one = session.judged_runs.counts(RunFilter(workload="w1"))
    assert counts == {"slow": 12, "normal": 36, None: 12}
    assert {row.verdict for row in slow} == {"slow"}
    assert len(slow) == counts["slow"]
    assert sum(of_one.values()) == MANY // 2


def test_the_first_part_is_served_by_an_index(judged: Catalog) -> None:
    plan = plan_of(judged, lambda session: session.judged_runs.find(limit=5))
    assert "ix_run_verdicts_excess_seconds_run_id" in plan
    assert_served(plan)
