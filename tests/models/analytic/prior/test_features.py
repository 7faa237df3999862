import numpy as np
import pandas as pd
import pytest

from crosswind.models.analytic.prior.features import Features

TABLE = pd.DataFrame(
    {"ranks": [1.0, 2, 4, 8], "same": [3.0] * 4, "device": ["a", "a", "b", "b"], "offset": [-1.0, 0, 0, 1]}
)


def test_doublings_are_equally_far_apart_and_columns_that_do_not_differ_are_left_out() -> None:
    points = Features.of(TABLE).points(TABLE)
    assert points.shape == (4, 4)  # ranks, two devices, offset
    assert np.diff(points[:, 0]) == pytest.approx([np.diff(points[:, 0])[0]] * 3)
    assert points.mean(axis=0) == pytest.approx(0)
    assert points.std(axis=0) == pytest.approx(1)


def test_missing_is_the_mean_and_zero_ranks_are_very_far() -> None:
    features = Features.of(TABLE)
    asked = pd.DataFrame({"ranks": [np.nan, 0.0], "same": [3.0] * 2, "device": ["a"] * 2, "offset": [0.0] * 2})
    points = features.points(asked)
    assert points[0, 0] == 0
    assert points[1, 0] < -50


def test_a_missing_column_is_the_mean_and_an_unknown_one_does_not_count() -> None:
    features = Features.of(TABLE)
    lacking = TABLE[["ranks", "device"]].assign(unknown=1.0)
    assert np.array_equal(features.points(lacking), features.points(TABLE.assign(offset=np.nan)))


def test_a_text_among_numbers_is_missing() -> None:
    features = Features.of(TABLE)
    asked = TABLE.assign(ranks=["1", "2", "many", "8"])
    assert features.points(asked)[:, 0] == pytest.approx(features.points(TABLE.assign(ranks=[1.0, 2, np.nan, 8]))[:, 0])
