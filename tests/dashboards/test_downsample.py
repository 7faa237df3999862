import numpy as np

from crosswind.dashboards.downsample import MOST_POINTS, buckets, keep_extremes


def test_few_points_are_all_kept() -> None:
    assert keep_extremes(np.zeros(MOST_POINTS)).tolist() == list(range(MOST_POINTS))


def test_a_single_spike_and_a_single_dip_survive_among_a_million() -> None:
    values = np.ones(1_000_000)
    values[123_457], values[765_432] = 9.0, -9.0
    kept = keep_extremes(values)
    assert len(kept) <= MOST_POINTS
    assert {0, 123_457, 765_432, 999_999} <= set(kept.tolist())
    assert (np.diff(kept) > 0).all()


def test_missing_values_hide_no_extreme() -> None:
    values = np.full(100, np.nan)
    values[41], values[43] = 5.0, 1.0
    assert {41, 43} <= set(keep_extremes(values, 10).tolist())


def test_buckets_are_of_one_size_and_no_more_than_asked() -> None:
    assert buckets(7, 3).tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert buckets(2, 3).tolist() == [0, 1]
    assert buckets(0, 3).tolist() == []
