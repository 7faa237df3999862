from collections.abc import Callable

import numpy as np
import pytest

from crosswind.client.local import Local
from crosswind.dashboards.pages.causes.variability import VariabilityView, view
from crosswind.dashboards.pages.page import PageQuery
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.store.store import Store

Record = Callable[..., None]


def seen(store: Store, **query: str) -> VariabilityView:
    return view(Local(store), PageQuery(query))


def test_cohorts_are_ranked_by_their_cov_and_small_ones_left_out(lab: Store, record: Record) -> None:
    for number in range(3):
        record(lab, f"s{number}", workload="steady", minute=20 + number)
    shown = seen(lab)
    assert [(row.label, row.runs) for row in shown.cohorts] == [("nanogpt", 5), ("steady", 3)]
    assert (shown.looked_at, shown.in_small_cohorts) == (10, 2)
    assert shown.selected == shown.cohorts[0]
    assert shown.cohorts[1].cov_ratio == pytest.approx(0, abs=1e-9)


def test_cov_and_time_lost_are_those_of_the_runs_mean_steps(lab: Store) -> None:
    [row] = seen(lab).cohorts
    means = np.array([0.0454, 0.0455, 0.0456, 0.0757, 0.0458])  # compute + 0.4 ms mean jitter + 5 ms; r3 30 ms more
    assert row.cov_ratio == pytest.approx(means.std(ddof=1) / means.mean(), rel=1e-3)
    lost = 21 * (means - np.median(means)).clip(0).sum()
    assert row.lost_seconds == pytest.approx(lost, rel=1e-3)
    assert row.lost_ratio == pytest.approx(lost / (21 * means.sum()), rel=1e-3)


def test_the_selected_cohort_is_explained_and_its_slowest_run_leads(lab: Store) -> None:
    shown = seen(lab)
    assert [chart.name for chart in shown.charts] == ["cohort", "causes", "ecdf"]
    assert (shown.slowest[0].run.run_id, shown.explained) == ("r3", 5)
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
    with pytest.raises(NotFoundError, match="'nope' is not among"):
        seen(lab, cohort="nope")


def test_cohorts_of_one_workload_are_distinguished_by_what_differs(store: Store, record: Record) -> None:
    for threads in (1, 2):
        for number in range(3):
            record(store, f"t{threads}{number}", configuration={"lr": 0.1, "threads": threads})
    assert {row.label for row in seen(store).cohorts} == {"nanogpt threads=1", "nanogpt threads=2"}


def test_too_few_runs_are_not_compared(store: Store, record: Record) -> None:
    record(store, "r0")
    shown = seen(store)
    assert shown.sentence == "No cohort among 1 run has 3 runs with steps yet, so nothing can be compared."
    assert (shown.charts, shown.selected) == ((), None)
