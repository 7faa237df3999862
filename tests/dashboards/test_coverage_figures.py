import pandas as pd
import pytest

from crosswind.dashboards.figures.coverage import Contender, coverage_plot, leaderboard


def test_a_quantile_that_holds_too_little_is_the_finding() -> None:
    drawn = coverage_plot(pd.DataFrame({"level": [0.9, 0.5], "share": [0.7, 0.48]}), runs=100)
    assert drawn is not None
    assert [(point.level, point.share, point.is_off) for point in drawn.points] == [
        (0.5, 0.48, False),
        (0.9, 0.7, True),
    ]
    assert drawn.title == "P90 covered 70 % of 100 runs"
    assert (drawn.points[1].low, drawn.points[1].high) == pytest.approx((0.6042, 0.7811), abs=1e-4)  # Wilson, 70 of 100
    assert drawn.table.rows[1] == ("90 %", "70 %", "60 % to 78 %")
    assert [trace.name for trace in drawn.draw().as_plotly().data] == ["as promised", "holds", "does not hold"]


def test_few_runs_cannot_tell_much() -> None:
    drawn = coverage_plot(pd.DataFrame({"level": [0.9], "share": [0.75]}), runs=8)
    assert drawn is not None
    assert drawn.title == "The coverage of every quantile is right within the error of 8 runs"


def test_an_interval_stays_within_zero_and_one() -> None:
    drawn = coverage_plot(pd.DataFrame({"level": [0.05, 0.99], "share": [0.0, 1.0]}), runs=10)
    assert drawn is not None
    assert (drawn.points[0].low, drawn.points[1].high) == (pytest.approx(0, abs=1e-12), pytest.approx(1))
    assert 0 <= drawn.points[0].low <= drawn.points[1].high <= 1
    assert drawn.points[0].high == pytest.approx(1 - drawn.points[1].low)


def test_methods_are_ranked_and_the_model_stands_out() -> None:
    losses = pd.DataFrame({"method": ["ewma", "step-time 3", "last"], "loss": [0.03, 0.02, 0.025]})
    drawn = leaderboard(losses.assign(is_model=[False, True, False]))
    assert drawn is not None
    assert drawn.contenders == (
        Contender("step-time 3", 0.02, True),
        Contender("last", 0.025, False),
        Contender("ewma", 0.03, False),
    )
    assert drawn.title == "step-time 3 errs 20 % less than last, the best baseline"
    assert drawn.table.rows[0] == ("step-time 3", "2 %")


def test_a_model_that_loses_is_named_in_the_title() -> None:
    losses = pd.DataFrame({"method": ["m", "last"], "loss": [0.03, 0.02], "is_model": [True, False]})
    drawn = leaderboard(losses)
    assert drawn is not None
    assert drawn.title == "m errs 50 % more than last, the best baseline"


def test_nothing_to_draw_is_no_figure() -> None:
    assert coverage_plot(pd.DataFrame({"level": [], "share": []}), runs=10) is None
    assert coverage_plot(pd.DataFrame({"level": [0.5], "share": [0.5]}), runs=0) is None
    assert leaderboard(pd.DataFrame({"method": ["last"], "loss": [0.1], "is_model": [False]})) is None
    alone = leaderboard(pd.DataFrame({"method": ["m"], "loss": [0.1], "is_model": [True]}))
    assert alone is not None
    assert alone.title == "m has no baseline to be compared with"
