from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from tests.models.explain.drawn_segments import segments_from

from crosswind.data.store.features import WARM_UP_STEPS
from crosswind.models.explain.cohort.columns import COLUMNS

Rows = Callable[..., pd.DataFrame]


def column(segments: object, name: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return segments.values[:, COLUMNS.index(name)]  # type: ignore[attr-defined, no-any-return]


def test_the_rank_that_waits_least_is_the_culprit_and_its_wait_is_the_fabric(step_rows: Rows) -> None:
    segments = segments_from(step_rows([[0.030, 0.050]] * 10, fabric=0.004))
    assert segments is not None
    assert set(segments.culprits) == {1}
    assert column(segments, "compute") == pytest.approx(0.050)
    assert column(segments, "fabric") == pytest.approx(0.004)
    assert segments.time == pytest.approx(0.054)


def test_the_culprit_changes_from_step_to_step(step_rows: Rows) -> None:
    local = [[0.030, 0.050], [0.060, 0.040]] * 6
    segments = segments_from(step_rows(local))
    assert segments is not None
    first = WARM_UP_STEPS + 1  # one more, because a segment begins in the step before
    assert list(segments.culprits) == [(step + 1) % 2 for step in range(first, 12)]


def test_what_a_rank_does_after_the_collective_belongs_to_its_next_segment(step_rows: Rows) -> None:
    rows = step_rows([[0.030, 0.030]] * 10)
    late = (rows["step"] == 6) & (rows["rank"] == 1)
    rows.loc[late, ["tail_seconds", "compute_seconds", "duration_seconds"]] += [0.020, 0.020, 0.020]
    segments = segments_from(rows)
    assert segments is not None
    compute = dict(zip(range(WARM_UP_STEPS + 1, 10), column(segments, "compute"), strict=True))
    assert compute[6] == pytest.approx(0.030)
    assert compute[7] == pytest.approx(0.050)


def test_a_step_that_a_rank_did_not_record_makes_no_segment(step_rows: Rows) -> None:
    rows = step_rows([[0.030, 0.030]] * 12)
    whole = segments_from(rows)
    holed = segments_from(rows[~((rows["step"] == 7) & (rows["rank"] == 0))])
    assert whole is not None
    assert holed is not None
    assert len(whole.values) - len(holed.values) == 2  # step 7 and the segment that begins in it


def test_ranks_without_collectives_make_no_segments(step_rows: Rows) -> None:
    rows = step_rows([[0.030, 0.030]] * 10).assign(tail_seconds=np.nan)
    assert segments_from(rows) is None


def test_a_single_rank_is_its_own_culprit_and_needs_no_collectives(step_rows: Rows) -> None:
    rows = step_rows([[0.030]] * 10, fabric=0.0).assign(tail_seconds=np.nan)
    segments = segments_from(rows)
    assert segments is not None
    assert column(segments, "compute") == pytest.approx(0.030)


def test_two_steps_are_too_few(step_rows: Rows) -> None:
    assert segments_from(step_rows([[0.030, 0.030]] * 2)) is None


def test_what_was_sampled_is_the_same_in_all_segments_and_missing_else(step_rows: Rows) -> None:
    segments = segments_from(step_rows([[0.030, 0.050]] * 10), {"throttled": 0.003, "overlimits": 7.0})
    assert segments is not None
    assert set(column(segments, "throttled")) == {0.003}
    assert set(column(segments, "overlimits")) == {7.0}
    assert np.isnan(column(segments, "out_of_order")).all()


def test_a_stall_is_idle_time_of_a_segment_that_stands_out(step_rows: Rows) -> None:
    rows = step_rows([[0.030, 0.030]] * 30, cpu_user_seconds=0.025, run_queue_wait_seconds=0.002)
    whole = segments_from(rows)
    stopped = (rows["step"] == 20) & (rows["rank"] == 1)
    rows.loc[stopped, ["compute_seconds", "duration_seconds"]] += 0.5
    rows.loc[(rows["step"] == 20) & (rows["rank"] == 0), ["comm_seconds", "duration_seconds"]] += 0.5
    segments = segments_from(rows)
    assert whole is not None
    assert segments is not None
    assert column(whole, "stalled").sum() == 0
    assert column(segments, "stalled").sum() == pytest.approx(0.5)
    assert column(segments, "stalled_fabric").sum() == 0


def test_a_step_that_always_takes_long_is_no_stall(step_rows: Rows) -> None:
    local = [[0.030, 0.300 if step % 5 == 0 else 0.030] for step in range(40)]
    segments = segments_from(step_rows(local))
    assert segments is not None
    assert column(segments, "stalled").sum() == 0
