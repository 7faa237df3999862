import numpy as np
import pandas as pd
import pytest

from crosswind.dashboards.figures.causes import CauseTotal, cause_totals
from crosswind.dashboards.figures.runs import runs_over_time
from crosswind.dashboards.figures.variability import cohort_distributions, cohort_over_time
from crosswind.data.schema.answers.explanations import Verdict

POINTS = [
    "run_id",
    "workload",
    "started_ns",
    "verdict",
    "measured_seconds",
    "expected_seconds",
    "excess_low",
    "excess_high",
]
NS = 1_760_000_000_000_000_000


def test_runs_are_set_against_what_was_expected_of_each() -> None:
    rows = [
        ("b", "w", NS + 10**9, "slow", 15.0, 10.0, 4.0, 6.0),
        ("a", "w", NS, "normal", 9.0, 10.0, -2.0, 0.0),
        ("c", "w", NS + 2 * 10**9, "insufficient_evidence", None, None, None, None),
        ("d", "w", None, "normal", 1.0, 1.0, 0.0, 0.0),
    ]
    drawn = runs_over_time(pd.DataFrame(rows, columns=POINTS))
    assert drawn is not None
    assert [(point.run_id, point.ratio, point.low, point.high) for point in drawn.points] == [
        ("a", 0.9, 0.8, 1.0),
        ("b", 1.5, 1.4, 1.6),
    ]
    assert drawn.left_out == 2
    assert drawn.title == "1 slow run took 1.50x the expected time"
    assert drawn.table.rows[0][2:] == ("slow", "1.50x [1.40 to 1.60]")
    assert [trace.name for trace in drawn.draw().as_plotly().data] == ["slow", "normal"]


def test_runs_that_are_perhaps_slow_are_neither_slow_nor_as_expected() -> None:
    rows = [
        ("a", "w", NS, "normal", 9.0, 10.0, -2.0, 0.0),
        ("b", "w", NS + 10**9, "perhaps_slow", 12.0, 10.0, -1.0, 4.0),
    ]
    drawn = runs_over_time(pd.DataFrame(rows, columns=POINTS))
    assert drawn is not None
    assert drawn.title == "1 run of 2 perhaps slow, none surely"
    assert [trace.name for trace in drawn.draw().as_plotly().data] == ["perhaps slow", "normal"]


def test_no_run_to_compare_is_no_figure() -> None:
    rows = [("c", "w", NS, "insufficient_evidence", None, None, None, None)]
    assert runs_over_time(pd.DataFrame(rows, columns=POINTS)) is None
    assert runs_over_time(pd.DataFrame([], columns=POINTS)) is None


def test_a_cohort_has_its_band_and_its_runs_in_order() -> None:
    runs = pd.DataFrame(
        {"run_id": ["b", "a", "c", "d"], "started_ns": [2, 1, 3, 4], "step_mean_seconds": [0.2, 0.1, 0.3, None]}
    )
    drawn = cohort_over_time(runs, {"c": Verdict.SLOW})
    assert drawn is not None
    assert [run.run_id for run in drawn.runs] == ["a", "b", "c"]
    assert (drawn.p10, drawn.p50, drawn.p90) == pytest.approx((0.12, 0.2, 0.28))
    assert drawn.table.rows[0][1:] == ("c", "300 ms", "1.50x", "slow")
    names = [trace.name for trace in drawn.draw().as_plotly().data if trace.mode == "markers"]
    assert names == ["not judged yet", "slow"]
    assert cohort_over_time(runs.iloc[3:], {}) is None


def test_distributions_are_relative_to_each_cohorts_median() -> None:
    runs = pd.DataFrame({"cohort": ["x"] * 4 + ["y"], "step_mean_seconds": [4.0, 2.0, 2.0, 1.0, 9.0]})
    drawn = cohort_distributions(runs, {"x": "first", "z": "gone", "y": "second"}, selected="x")
    assert drawn is not None
    assert [(cohort.label, cohort.is_selected, cohort.ratios) for cohort in drawn.cohorts] == [
        ("first", True, (0.5, 1.0, 1.0, 2.0)),
        ("second", False, (1.0,)),
    ]
    assert drawn.cohorts[0].at_most(1.0) == 0.75
    assert drawn.title == "In first, 25 % of runs take over 1.1x their cohort's median"
    stairs = drawn.draw().as_plotly().data[-1]
    assert (list(stairs.x), list(stairs.y)) == ([0.5, 0.5, 1.0, 1.0, 2.0], [0, 25, 50, 75, 100])
    assert cohort_distributions(runs, {"z": "gone"}, selected="z") is None


def test_a_distribution_of_many_runs_is_thinned() -> None:
    runs = pd.DataFrame({"cohort": "x", "step_mean_seconds": np.linspace(1, 3, 30_000)})
    drawn = cohort_distributions(runs, {"x": "x"}, selected="x")
    assert drawn is not None
    [stairs] = drawn.draw().as_plotly().data
    assert len(stairs.x) <= 101
    assert (stairs.x[-1], stairs.y[-1]) == (pytest.approx(1.5), 100)


def test_causes_are_summed_over_slow_runs_and_gains_left_out() -> None:
    rows = [
        ("a", "network", 2.0, False),
        ("a", "cpu", 3.0, True),
        ("b", "cpu", 4.0, True),
        ("b", "unexplained", -1.0, False),
    ]
    drawn = cause_totals(pd.DataFrame(rows, columns=["run_id", "cause", "seconds", "is_main"]), explained_runs=9)
    assert drawn is not None
    assert drawn.totals == (CauseTotal("cpu", 7.0, 2), CauseTotal("network", 2.0, 0))
    assert drawn.title == "CPU took the most time: 7.00 s, 78 % of what was lost"
    assert drawn.sentence == "Time lost by cause over 2 slow runs of 9 explained."
    assert (
        cause_totals(pd.DataFrame(rows[3:], columns=["run_id", "cause", "seconds", "is_main"]), explained_runs=1)
        is None
    )
