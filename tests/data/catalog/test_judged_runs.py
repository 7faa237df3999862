"""Verdicts are sorted, filtered, counted and paged by the database, the same way in both."""

import pytest
from tests.data.catalog.test_run_list import assert_served, plans_of

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.judged_runs import NO_CAUSE, ORDERS, RunPlace, VerdictFilter
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.catalog.verdicts import StoredFeatures
from crosswind.data.schema.access import RowRule
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


def find(catalog: Catalog, *arguments: object, **named: object) -> list[RunPlace]:
    with catalog.read() as session:
        return session.judged_runs.find(*arguments, **named)


def test_the_largest_excess_comes_first_and_the_unknown_last(judged: Catalog) -> None:
    places = find(judged, by="-excess", limit=MANY)
    valued = [place.value for place in places if place.value is not None]
    assert valued == sorted(valued, reverse=True)
    assert [place.value for place in places] == valued + [None] * (MANY - len(valued))
    assert len(valued) == sum(bool(number % 5 and number % 3) for number in range(MANY))


def test_a_run_in_progress_is_listed_too(judged: Catalog) -> None:
    with judged.write() as session:
        session.runs.merge(Run("live", "w0", "lab", RunState.RUNNING, started_ns=99))
    for by in ("-started", "-excess", "cause", "seconds"):
        assert "live" in [place.run_id for place in find(judged, by=by, limit=MANY + 1)]
    assert find(judged, limit=1)[0].run_id == "live"


@pytest.mark.parametrize("wanted", [RunFilter(), RunFilter(workload="w1", state=RunState.COMPLETED)])
@pytest.mark.parametrize("verdicts", [VerdictFilter(), VerdictFilter(("slow",))])
def test_parts_join_without_gap_or_repeat(judged: Catalog, wanted: RunFilter, verdicts: VerdictFilter) -> None:
    for by in [sign + name for name in ORDERS for sign in ("", "-")]:
        seen: list[RunPlace] = []
        whole = find(judged, wanted, verdicts, by=by, limit=MANY)
        while part := find(judged, wanted, verdicts, by=by, after=seen[-1] if seen else None, limit=7):
            seen += part
        assert seen == whole, by
        assert len(whole) == len({place.run_id for place in whole}), by
        if verdicts == VerdictFilter():
            assert len(whole) == (MANY if wanted.workload is None else MANY // 2), by
        values = [place.value for place in whole if place.value is not None]
        assert values == sorted(values, reverse=by.startswith("-")), by


def test_verdicts_are_counted_and_filtered(judged: Catalog) -> None:
    with judged.read() as session:
        counts = session.judged_runs.counts()
        of_one = session.judged_runs.counts(RunFilter(workload="w1"))
        excess = {row.run_id: row for row in session.verdicts.get([f"r{number:02}" for number in range(MANY)]).values()}
    assert {one.verdict: one.runs for one in counts if one.runs} == {"slow": 12, "normal": 36, None: 12}
    assert sum(one.runs for one in of_one) == MANY // 2
    slow = find(judged, judged=VerdictFilter(["slow"]), limit=MANY)
    assert len(slow) == 12
    assert {excess[place.run_id].verdict for place in slow} == {"slow"}
    lost = sum(excess[place.run_id].excess_seconds or 0.0 for place in slow)
    assert sum(one.excess_seconds for one in counts if one.verdict == "slow") == pytest.approx(lost)


def test_all_runs_are_counted_as_those_of_each_workload_together(judged: Catalog) -> None:
    with judged.read() as session:
        whole = session.judged_runs.counts()
        parts = [one for name in ("w0", "w1") for one in session.judged_runs.counts(RunFilter(workload=name))]
        stand = session.runs.stand(RunFilter())
        of_parts = [session.runs.stand(RunFilter(workload=name)) for name in ("w0", "w1")]
    for one in [*whole, *parts]:
        of_all, of_each = ([other for other in group if other.cause == one.cause] for group in (whole, parts))
        assert sum(other.runs for other in of_all) == sum(other.runs for other in of_each)
        lost = sum(other.excess_seconds for other in of_each)
        assert sum(other.excess_seconds for other in of_all) == pytest.approx(lost)
    assert stand == (sum(count for count, _ in of_parts), max(end for _, end in of_parts))


def test_whoever_may_see_some_runs_has_these_sorted_and_counted(judged: Catalog) -> None:
    with judged.write() as session:
        session.runs.merge(Run("anns", "w0", "lab", RunState.COMPLETED, started_ns=5, user="ann"))
    seen = judged.seen_by(RowRule(users=frozenset({"ann"})))
    assert [place.run_id for place in find(seen, by="-excess", limit=MANY)] == ["anns"]
    with seen.read() as session:
        assert [(one.verdict, one.runs) for one in session.judged_runs.counts()] == [(None, 1)]


@pytest.mark.parametrize(
    ("by", "index"), [("-excess", "excess_seconds"), ("cause", "cause"), ("-started", "listed_ns")]
)
def test_the_first_part_is_served_by_an_index(judged: Catalog, by: str, index: str) -> None:
    first, *_ = plans_of(judged, lambda session: session.judged_runs.find(by=by, limit=5))
    assert index in first
    assert_served(first)


def test_slow_runs_are_listed_by_cause_and_their_node_seconds_summed(catalog: Catalog) -> None:
    causes = {"r0": "stall", "r1": "stall", "r2": None, "old": "stall"}
    begun = {"old": 1, "r0": 5, "r1": 6, "r2": 7, "fine": 8}
    on = {"r0": ("a", "b", "c"), "r1": ("a",), "fine": ("a", "b")}
    runs = [
        Run(name, "w", "lab", RunState.COMPLETED, nodes=on.get(name, ()), started_ns=ns) for name, ns in begun.items()
    ]
    with catalog.write() as session:
        session.runs.put_all([*runs, Run("live", "w", "lab", RunState.RUNNING, started_ns=9)])
        session.verdicts.put_features(
            [StoredFeatures(RunVerdict(name, steps=7), 1, "form", None, 0) for name in begun],
            {name: [] for name in begun},
        )
        for name in begun:
            verdict = RunVerdict(
                name, verdict="slow" if name in causes else "normal", cause=causes.get(name), excess_seconds=10.0
            )
            session.verdicts.put_verdict(verdict, "{}", revision=(1, 0), allowed=0)
        newest = {one.cause_or_none: one for one in session.judged_runs.newest(RunFilter(since_ns=2), limit=MANY)}
        [last] = session.judged_runs.newest(RunFilter(), limit=2)
    assert (newest["stall"].runs, newest["stall"].excess_seconds, newest["stall"].node_seconds) == (2, 20.0, 40.0)
    assert (newest[NO_CAUSE].runs, newest[NO_CAUSE].node_seconds) == (1, 10.0)
    assert (newest[None].runs, newest[None].node_seconds) == (1, 0.0)
    assert (last.verdict, last.runs) == ("normal", 1), "of the newest two one is in progress"
    assert [place.run_id for place in find(catalog, judged=VerdictFilter(cause="stall"), limit=MANY)] == [
        "r1",
        "r0",
        "old",
    ]
    assert [place.run_id for place in find(catalog, judged=VerdictFilter(["slow"], NO_CAUSE), limit=MANY)] == ["r2"]
    rule = RowRule(users=frozenset({"ann"}))
    with catalog.seen_by(rule).read() as session:
        assert session.judged_runs.newest(RunFilter(), limit=MANY) == []
