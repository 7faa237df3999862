from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from crosswind.dashboards.figures.phases import phase_stack
from crosswind.dashboards.figures.ranks import RankRow, rank_heat_map
from crosswind.dashboards.figures.run.course import run_course
from crosswind.dashboards.figures.steps import MOST_DRAWN, Band, step_ribbon
from crosswind.dashboards.figures.waterfall import waterfall
from crosswind.dashboards.palette import GREEN, ORANGE, PEER, VERMILION
from crosswind.data.schema.answers.explanations import CauseShare, Explanation, Interval, StepChange
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import Rank, Run, RunState

NO_COHORT = pd.DataFrame(columns=["step", "p10", "p50", "p90"], dtype=float)


def test_the_waterfall_goes_from_expected_to_measured_largest_cause_first(slow: Explanation) -> None:
    drawn = waterfall(slow)
    assert [(drop.cause, drop.start, drop.end, drop.is_main) for drop in drawn.drops] == [
        ("cpu_contention", 10.0, 14.0, True),
        ("network", 14.0, 14.5, False),
        ("unexplained", 14.5, 15.0, False),
    ]
    assert drawn.expected_seconds + sum(drop.seconds.value for drop in drawn.drops) == drawn.measured_seconds
    assert drawn.title == "CPU contention took 4.00 s of 5.00 s in excess"
    assert drawn.table.rows[1] == ("CPU contention", "+4.00 s [3.50 to 4.50]", "80 %")


def test_the_bars_of_the_waterfall_are_where_its_drops_are(slow: Explanation) -> None:
    bar = waterfall(slow).draw().as_plotly().data[0]
    assert (list(bar.base), list(bar.x)) == ([10.0, 14.0, 14.5], [4.0, 0.5, 0.5])
    assert list(bar.error_x.array) == pytest.approx([0.5, 0.4, 1.0])
    assert list(bar.marker.color) == [VERMILION, ORANGE, PEER]


def test_a_cause_that_saved_time_goes_backwards_in_green(slow: Explanation) -> None:
    faster = replace(
        slow, shares=(CauseShare("network", Interval(-2.0, -3.0, -1.0), ""),), measured_seconds=8.5, cause=None
    )
    drawn = waterfall(faster)
    assert drawn.drops[0].end == 8.0
    assert drawn.draw().as_plotly().data[0].marker.color[0] == GREEN
    assert drawn.title == "Measured 8.50 s, expected 10.0 s"


def test_a_run_that_took_what_was_expected_keeps_an_axis_that_can_be_read(slow: Explanation) -> None:
    expected, hair = 0.7233, 1e-14
    as_expected = replace(
        slow,
        expected_seconds=expected,
        measured_seconds=expected + hair,
        shares=(),
        unexplained=Interval(hair, hair, hair),
    )
    low, high = waterfall(as_expected).draw().as_plotly().layout.xaxis.range
    assert high - low == pytest.approx(0.01 * 723.3)
    assert low < 723.3 < high
    assert waterfall(slow).draw().as_plotly().layout.xaxis.range is None


def test_a_waterfall_that_does_not_add_up_is_refused(slow: Explanation, unsure: Explanation) -> None:
    with pytest.raises(InvalidInputError, match=r"'r3' sums to 15\.0 s, expected 16\.0 s"):
        waterfall(replace(slow, measured_seconds=16.0))
    with pytest.raises(InvalidInputError, match="'r9' has no numbers: insufficient_evidence"):
        waterfall(unsure)


def test_the_ribbon_shows_the_slowest_rank_over_the_cohort() -> None:
    run = pd.DataFrame({"step": [3, 4], "seconds": [0.2, 0.4]})
    cohort = pd.DataFrame({"step": [3, 4, 5], "p10": [0.1, 0.1, 0.1], "p50": [0.2, 0.2, 0.2], "p90": [0.3, 0.3, 0.3]})
    drawn = step_ribbon(run, cohort, cohort_runs=7)
    assert (drawn.steps, drawn.seconds, drawn.step_count) == ((3, 4), (0.2, 0.4), 2)
    assert drawn.band == Band((3, 4, 5), (0.1,) * 3, (0.2,) * 3, (0.3,) * 3)
    assert drawn.above_ratio == 0.5
    assert drawn.title == "Median step 300 ms, 1.50x the cohort's 200 ms; 50 % of steps above the cohort's P90"
    assert drawn.table.rows[1] == ("4", "400 ms", "400 ms", "400 ms", "100 ms", "200 ms", "300 ms")


def test_a_ribbon_without_cohort_says_so() -> None:
    run = pd.DataFrame({"step": [3], "seconds": [0.1]})
    drawn = step_ribbon(run, NO_COHORT, cohort_runs=0)
    assert (drawn.band, drawn.above_ratio) == (None, None)
    assert "No other run of the cohort" in drawn.sentence
    assert len(drawn.draw().as_plotly().data) == 1


def test_a_long_ribbon_keeps_its_spike_and_few_points() -> None:
    seconds = np.full(50_000, 0.1)
    seconds[31_234] = 7.0
    steps = np.arange(50_000)
    cohort = pd.DataFrame({"step": steps, "p10": 0.1, "p50": 0.2, "p90": 0.3})
    drawn = step_ribbon(pd.DataFrame({"step": steps, "seconds": seconds}), cohort, cohort_runs=3)
    assert len(drawn.steps) <= MOST_DRAWN
    assert dict(zip(drawn.steps, drawn.seconds, strict=True))[31_234] == 7.0
    assert drawn.band is not None
    assert len(drawn.band.steps) <= MOST_DRAWN
    assert len(drawn.table.rows) <= 60


def test_a_ribbon_marks_from_where_on_the_run_was_slow() -> None:
    run = pd.DataFrame({"step": [3, 4, 5, 6], "seconds": [0.1, 0.1, 0.3, 0.3]})
    drawn = step_ribbon(run, NO_COHORT, cohort_runs=0, change=StepChange(5, None, 0.1, 0.3))
    assert drawn.title == "Slow since step 5: 300 ms a step, 100 ms before"
    figure = drawn.draw().as_plotly()
    assert [shape.x0 for shape in figure.layout.shapes] == [5]
    assert [note.text for note in figure.layout.annotations] == ["slow since step 5"]


def ranks_of(values: dict[int, tuple[float, float | None]]) -> pd.DataFrame:
    rows = [(rank, wait, last) for rank, (wait, last) in values.items()]
    return pd.DataFrame(rows, columns=["rank", "comm_seconds", "last_ratio"])


def test_the_heat_map_names_the_rank_that_arrives_last_and_has_its_margins() -> None:
    cells = pd.DataFrame({"rank": [0, 0, 1], "cell": [0, 1, 0], "wait_seconds": [0.5, 0.4, 0.1]})
    means = pd.DataFrame({"cell": [0, 1], "wait_seconds": [0.3, 0.2]})
    ranks = ranks_of({0: (0.375, 0.25), 1: (0.175, 0.75)})
    drawn = rank_heat_map(ranks, cells, means, first_step=3, steps_a_cell=2)
    assert drawn is not None
    assert drawn.ranks == (RankRow(0, 0.375, 0.25), RankRow(1, 0.175, 0.75))
    assert (drawn.steps, drawn.waits, drawn.means) == ((3, 5), ((0.5, 0.4), (0.1, None)), (0.3, 0.2))
    assert (drawn.culprit.rank, drawn.title) == (1, "Rank 1 arrives last in 75 % of steps")
    assert drawn.table.rows[0] == ("1", "75 %", "175 ms")
    _, right, above = drawn.draw().as_plotly().data
    assert list(right.x) == [375.0, 175.0]
    assert list(above.y) == [300.0, 200.0]
    assert (right.xaxis, above.yaxis) == ("x2", "y2")


def test_one_rank_or_no_communication_gives_no_heat_map() -> None:
    nothing = pd.DataFrame({"rank": [], "cell": [], "wait_seconds": []})
    assert rank_heat_map(ranks_of({0: (0.5, 1.0)}), nothing, nothing) is None
    assert rank_heat_map(ranks_of({0: (0.0, 0.5), 1: (0.0, 0.5)}), nothing, nothing) is None
    assert rank_heat_map(ranks_of({0: (0.5, None), 1: (0.5, None)}), nothing, nothing) is None


def test_phases_sum_to_the_step() -> None:
    columns = ("input_seconds", "compute_seconds", "comm_seconds", "checkpoint_seconds", "other_seconds")
    rows = [(0, 0.2, 0.2, 0.5, 0.0, 0.0), (1, 0.1, 0.7, 0.1, 0.0, 0.0)]
    drawn = phase_stack(pd.DataFrame(rows, columns=["rank", *columns]))
    assert drawn is not None
    assert drawn.ranks[0].seconds == pytest.approx((0.2, 0.2, 0.5, 0.0, 0.0))
    assert drawn.ranks[1].local_seconds == pytest.approx(0.8)
    assert drawn.phases == ("input", "compute", "comm")
    assert drawn.title == "Rank 1 needs longest before it communicates: 800 ms a step"
    assert drawn.table.rows[1] == ("1", "100 ms", "700 ms", "100 ms", "0 s", "0 s", "900 ms")
    assert phase_stack(pd.DataFrame(columns=["rank", *columns])) is None


def test_the_course_of_a_run_is_start_up_warm_up_steps_and_end() -> None:
    second = 1_000_000_000
    run = Run("r", "w", "s", RunState.COMPLETED, started_ns=0, ended_ns=20 * second)
    ranks = (Rank("r", 0, "a", 1, second), Rank("r", 1, "b", 2, 2 * second))
    steps = pd.DataFrame({"step": range(6), "began_ns": [(5 + n) * second for n in range(6)], "seconds": [1.0] * 6})
    drawn = run_course(run, ranks, steps)
    assert drawn is not None
    assert [(part.name, part.seconds) for part in drawn.parts] == [
        *(("launch", 2.0), ("start-up", 3.0), ("warm-up", 3.0), ("steps", 3.0), ("end", 9.0)),
    ]
    assert drawn.title == "5.00 s before the first step, 25 % of 20.0 s"
    assert run_course(run, ranks, steps[:0]) is None


def test_a_single_rank_is_described_by_its_largest_phase() -> None:
    drawn = phase_stack(
        pd.DataFrame(
            {
                "rank": [0],
                "input_seconds": [3.0],
                "compute_seconds": [1.0],
                "comm_seconds": [None],
                "checkpoint_seconds": [0.0],
                "other_seconds": [0.0],
            }
        ).astype({"comm_seconds": float})
    )
    assert drawn is not None
    assert drawn.title == "Input takes 75 % of a step"
