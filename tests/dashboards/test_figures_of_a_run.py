from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from crosswind.dashboards.downsample import MOST_POINTS
from crosswind.dashboards.figures.phases import phase_stack
from crosswind.dashboards.figures.ranks import MOST_CELLS, MOST_RANKS, RankRow, rank_heat_map
from crosswind.dashboards.figures.steps import Band, step_ribbon
from crosswind.dashboards.figures.waterfall import waterfall
from crosswind.dashboards.palette import GREEN, ORANGE, PEER, VERMILION
from crosswind.data.schema.answers.explanations import CauseShare, Explanation, Interval
from crosswind.data.schema.errors import InvalidInputError

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
    bar = waterfall(slow).draw().data[0]
    assert (list(bar.base), list(bar.x)) == ([10.0, 14.0, 14.5], [4.0, 0.5, 0.5])
    assert list(bar.error_x.array) == pytest.approx([0.5, 0.4, 1.0])
    assert list(bar.marker.color) == [VERMILION, ORANGE, PEER]


def test_a_cause_that_saved_time_goes_backwards_in_green(slow: Explanation) -> None:
    faster = replace(
        slow, shares=(CauseShare("network", Interval(-2.0, -3.0, -1.0), ""),), measured_seconds=8.5, cause=None
    )
    drawn = waterfall(faster)
    assert drawn.drops[0].end == 8.0
    assert drawn.draw().data[0].marker.color[0] == GREEN
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
    low, high = waterfall(as_expected).draw().layout.xaxis.range
    assert high - low == pytest.approx(0.01 * 723.3)
    assert low < 723.3 < high
    assert waterfall(slow).draw().layout.xaxis.range is None


def test_a_waterfall_that_does_not_add_up_is_refused(slow: Explanation, unsure: Explanation) -> None:
    with pytest.raises(InvalidInputError, match=r"'r3' sums to 15\.0 s, expected 16\.0 s"):
        waterfall(replace(slow, measured_seconds=16.0))
    with pytest.raises(InvalidInputError, match="'r9' has no numbers: insufficient_evidence"):
        waterfall(unsure)


def test_the_ribbon_shows_the_slowest_rank_over_the_cohort() -> None:
    run = pd.DataFrame({"step": [3, 3, 4, 4], "rank": [0, 1, 0, 1], "duration_seconds": [0.1, 0.2, 0.4, 0.3]})
    cohort = pd.DataFrame({"step": [3, 4, 5], "p10": [0.1, 0.1, 0.1], "p50": [0.2, 0.2, 0.2], "p90": [0.3, 0.3, 0.3]})
    drawn = step_ribbon(run, cohort, cohort_runs=7)
    assert (drawn.steps, drawn.seconds, drawn.step_count) == ((3, 4), (0.2, 0.4), 2)
    assert drawn.band == Band((3, 4, 5), (0.1,) * 3, (0.2,) * 3, (0.3,) * 3)
    assert drawn.above_ratio == 0.5
    assert drawn.title == "Median step 300 ms, 1.50x the cohort's 200 ms; 50 % of steps above the cohort's P90"
    assert drawn.table.rows[1] == ("4", "400 ms", "400 ms", "400 ms", "100 ms", "200 ms", "300 ms")


def test_a_ribbon_without_cohort_says_so() -> None:
    run = pd.DataFrame({"step": [3], "rank": [0], "duration_seconds": [0.1]})
    drawn = step_ribbon(run, NO_COHORT, cohort_runs=0)
    assert (drawn.band, drawn.above_ratio) == (None, None)
    assert "No other run of the cohort" in drawn.sentence
    assert len(drawn.draw().data) == 1


def test_a_long_ribbon_keeps_its_spike_and_few_points() -> None:
    seconds = np.full(50_000, 0.1)
    seconds[31_234] = 7.0
    steps = np.arange(50_000)
    cohort = pd.DataFrame({"step": steps, "p10": 0.1, "p50": 0.2, "p90": 0.3})
    drawn = step_ribbon(pd.DataFrame({"step": steps, "rank": 0, "duration_seconds": seconds}), cohort, cohort_runs=3)
    assert len(drawn.steps) <= MOST_POINTS
    assert dict(zip(drawn.steps, drawn.seconds, strict=True))[31_234] == 7.0
    assert drawn.band is not None
    assert len(drawn.band.steps) <= MOST_POINTS
    assert len(drawn.table.rows) <= 60


def waits(values: dict[tuple[int, int], float]) -> pd.DataFrame:
    return pd.DataFrame(
        [(rank, step, wait) for (rank, step), wait in values.items()], columns=["rank", "step", "comm_seconds"]
    )


def test_the_rank_that_waits_least_arrived_last() -> None:
    frame = waits(
        {(0, 3): 0.5, (1, 3): 0.1, (0, 4): 0.5, (1, 4): 0.1, (0, 5): 0.1, (1, 5): 0.5, (0, 6): 0.4, (1, 6): 0.0}
    )
    drawn = rank_heat_map(frame)
    assert drawn is not None
    assert drawn.ranks == (RankRow(0, pytest.approx(0.375), 0.25), RankRow(1, pytest.approx(0.175), 0.75))
    assert drawn.waits == ((0.5, 0.5, 0.1, 0.4), (0.1, 0.1, 0.5, 0.0))
    assert (drawn.culprit.rank, drawn.title) == (1, "Rank 1 arrives last in 75 % of steps")
    assert drawn.table.rows[0] == ("1", "75 %", "175 ms")


def test_a_step_that_a_rank_did_not_record_is_a_hole_and_no_evidence() -> None:
    drawn = rank_heat_map(waits({(0, 3): 0.5, (1, 3): 0.1, (0, 4): 0.01}))
    assert drawn is not None
    assert drawn.waits == ((0.5, 0.01), (0.1, None))
    assert drawn.culprit == RankRow(1, 0.1, 1.0)


def test_one_rank_or_no_communication_gives_no_heat_map() -> None:
    assert rank_heat_map(waits({(0, 3): 0.5})) is None
    assert rank_heat_map(waits({(0, 3): 0.0, (1, 3): 0.0})) is None
    assert rank_heat_map(waits({(0, 3): 0.5, (1, 4): 0.5})) is None
    assert rank_heat_map(waits({})) is None


def test_many_ranks_and_steps_keep_the_suspects_and_the_longest_waits() -> None:
    steps, ranks = 1000, 200
    grid = np.full((ranks, steps), 0.5)
    grid[150], grid[3, 777] = 0.1, 9.0
    frame = pd.DataFrame(
        {
            "rank": np.repeat(np.arange(ranks), steps),
            "step": np.tile(np.arange(steps), ranks),
            "comm_seconds": grid.ravel(),
        }
    )
    drawn = rank_heat_map(frame)
    assert drawn is not None
    assert (len(drawn.ranks), drawn.rank_count, drawn.culprit.rank) == (MOST_RANKS, ranks, 150)
    assert sum(len(row) for row in drawn.waits) <= MOST_CELLS
    assert "the 128 that wait least" in drawn.sentence
    few = rank_heat_map(frame[frame["rank"] < 60])
    assert few is not None
    assert few.steps_a_cell == 4
    assert few.waits[3][777 // 4] == 9.0


def test_phases_are_means_over_steps_and_sum_to_the_step() -> None:
    columns = ("input_seconds", "compute_seconds", "comm_seconds", "checkpoint_seconds", "other_seconds")
    rows = [(0, 0.1, 0.2, 0.6, 0.0, 0.0), (0, 0.3, 0.2, 0.4, 0.0, 0.0), (1, 0.1, 0.7, 0.1, 0.0, 0.0)]
    drawn = phase_stack(pd.DataFrame(rows, columns=["rank", *columns]))
    assert drawn is not None
    assert drawn.ranks[0].seconds == pytest.approx((0.2, 0.2, 0.5, 0.0, 0.0))
    assert drawn.ranks[1].local_seconds == pytest.approx(0.8)
    assert drawn.phases == ("input", "compute", "comm")
    assert drawn.title == "Rank 1 needs longest before it communicates: 800 ms a step"
    assert drawn.table.rows[1] == ("1", "100 ms", "700 ms", "100 ms", "0 s", "0 s", "900 ms")
    assert phase_stack(pd.DataFrame(columns=["rank", *columns])) is None


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
