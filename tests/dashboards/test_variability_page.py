import time
from collections.abc import Callable

import numpy as np
import pytest

from crosswind.client.local import Local
from crosswind.dashboards.pages.causes.variability import VariabilityView, view
from crosswind.dashboards.pages.page import PageQuery
from crosswind.dashboards.pages.runs.runs import view as runs_view
from crosswind.dashboards.wording import seconds
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store

Record = Callable[..., None]
HOUR_NS = 3_600_000_000_000


def seen(store: Store, **query: str) -> VariabilityView:
    return view(Local(store), PageQuery(query))


def _run(run_id: str, started_ns: int, workload: str = "bert") -> Run:
    return Run(run_id, workload, "lab", RunState.COMPLETED, 2, started_ns=started_ns, ended_ns=started_ns + 10**9)


def test_cohorts_are_ranked_by_their_cov_and_small_ones_left_out(lab: Store, record: Record) -> None:
    for number in range(3):
        record(lab, f"s{number}", workload="steady", minute=20 + number)
    shown = seen(lab)
    assert [(row.label, row.runs) for row in shown.cohorts] == [("nanogpt", 5), ("steady", 3)]
    assert (shown.looked_at, shown.in_small_cohorts) == (9, 1)
    assert shown.selected == shown.cohorts[0]
    assert shown.cohorts[1].cov_ratio == pytest.approx(0, abs=1e-7)


def test_cov_is_that_of_the_runs_mean_steps(lab: Store) -> None:
    [row] = seen(lab).cohorts
    means = np.array([0.0454, 0.0455, 0.0456, 0.0757, 0.0458])  # compute + 0.4 ms mean jitter + 5 ms; r3 30 ms more
    assert row.cov_ratio == pytest.approx(means.std(ddof=1) / means.mean(), rel=1e-3)
    assert row.step_p50_seconds == pytest.approx(means.mean(), rel=1e-2)


def test_time_lost_verdicts_and_main_cause_are_those_of_the_runs_page(lab: Store) -> None:
    shown, runs = seen(lab), runs_view(Local(lab), PageQuery())
    [row], [worst] = shown.cohorts, [one for one in runs.rows if one.explanation.verdict == "slow"]
    assert worst.explanation.excess is not None
    assert row.lost_seconds == worst.explanation.excess.value
    assert dict(row.verdicts) == {"slow": 1, "normal": 4}
    assert (row.cause, row.runs) == (worst.explanation.cause, 5)
    assert shown.sentence.endswith(f"; {seconds(row.lost_seconds)} lost, mainly to CPU contention.")
    measured = [one.explanation.measured_seconds or 0 for one in runs.rows]
    assert row.lost_ratio == pytest.approx(row.lost_seconds / sum(measured))


def test_cohorts_are_ranked_by_time_lost_on_demand(lab: Store, record: Record) -> None:
    for number in range(6):  # they vary more, but none of them is slow
        record(lab, f"w{number}", workload="wide", compute_ms=20 + 60 * (number % 2), minute=20 + number)
    assert [row.label for row in seen(lab).cohorts] == ["wide", "nanogpt"]
    by_time = seen(lab, sort="lost")
    assert [row.label for row in by_time.cohorts] == ["nanogpt", "wide"]
    assert by_time.sentence.startswith("nanogpt lost most time: ")
    with pytest.raises(InvalidInputError, match="expected one of cov, lost"):
        seen(lab, sort="runs")


def test_of_each_cohort_its_newest_runs_count_and_the_period_narrows_them(store: Store) -> None:
    now = time.time_ns()
    with store.catalog.write() as session:
        for number in range(210):
            session.runs.merge(_run(f"r{number:03}", now - (210 - number) * HOUR_NS))
        session.runs.merge(_run("other", now, workload="other"))
    with store.catalog.read() as session:
        [cohort] = [one for one in session.judged_cohorts.find(RunFilter()) if one.runs > 1]
        [other] = session.judged_cohorts.find(RunFilter(workload="other"))
        [latest] = session.judged_cohorts.find(RunFilter(workload="bert", since_ns=now - 24 * HOUR_NS - 1))
        none = session.judged_cohorts.find(RunFilter(system="none"))
    assert (cohort.runs, other.runs, latest.runs, none) == (200, 1, 24, [])


def test_the_selected_cohort_is_explained_and_its_slowest_run_leads(lab: Store) -> None:
    shown = seen(lab)
    assert [chart.name for chart in shown.charts] == ["cohort", "causes", "ecdf"]
    assert (shown.slowest[0].run.run_id, shown.drawn) == ("r3", 5)
    assert shown.slowest[0].ratio == pytest.approx(0.0757 / 0.0456, rel=1e-3)
    assert shown.charts[1].title.startswith("CPU contention took the most time")


def test_a_cohort_is_chosen_by_its_id(lab: Store, record: Record) -> None:
    for number in range(3):
        record(lab, f"s{number}", workload="steady", minute=20 + number)
    steady = seen(lab).cohorts[1].cohort_id
    shown = seen(lab, cohort=steady)
    assert shown.selected is not None
    assert shown.selected.workload == "steady"
    assert [chart.name for chart in shown.charts] == ["cohort", "ecdf"]
    with pytest.raises(NotFoundError, match="'nope' has no run"):
        seen(lab, cohort="nope")


def test_cohorts_of_one_workload_are_distinguished_by_what_differs(store: Store, record: Record) -> None:
    for threads in (1, 2):
        for number in range(3):
            record(store, f"t{threads}{number}", configuration={"lr": 0.1, "threads": threads})
    assert {row.label for row in seen(store).cohorts} == {"nanogpt threads=1", "nanogpt threads=2"}


def test_too_few_runs_are_not_compared(store: Store, record: Record) -> None:
    record(store, "r0")
    shown = seen(store)
    assert shown.sentence == "No cohort has 3 runs that have ended yet, so nothing can be compared."
    assert (shown.charts, shown.selected) == ((), None)
