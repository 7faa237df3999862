"""Intervals cover 0 where two halves come from one process, whatever their length, and exclude it where they do not."""

import numpy as np
import pytest

from crosswind.models.traces.difference.variation import differences

COLUMNS = 2000


def series(count: int, alike: float, random: np.random.Generator) -> np.ndarray:
    """Return columns of steps of which each resembles the one before it."""
    values = random.normal(size=(count, COLUMNS))
    for step in range(1, count):
        values[step] = alike * values[step - 1] + np.sqrt(1 - alike**2) * values[step]
    return values


@pytest.mark.parametrize("count", [2, 4, 10, 50])
@pytest.mark.parametrize("alike", [0.0, 0.3])
def test_halves_differ_by_nothing(count: int, alike: float) -> None:
    values = series(2 * count, alike, np.random.default_rng(count))
    result = differences(values[:count], values[count:])
    assert np.mean((result.low <= 0) & (result.high >= 0)) >= 0.89


def test_a_difference_beyond_the_variation_is_sure() -> None:
    random = np.random.default_rng(1)
    result = differences(series(20, 0.0, random), series(20, 0.0, random) + 3)
    assert result.is_sure.mean() > 0.99
    assert np.median(result.high - result.low) < 1.5


def test_a_side_with_one_step_has_the_variation_of_the_other() -> None:
    values = np.array([[1.0], [2.0], [3.0]])
    one = differences(values[:1], values)
    assert one.low < 0 < one.high
    assert (differences(values, values[:1]).low == -one.high).all()


def test_one_step_each_leaves_the_bounds_open() -> None:
    result = differences(np.array([[1.0, 2.0]]), np.array([[1.0, 5.0]]))
    assert result.value.tolist() == [0.0, 3.0]
    assert np.isnan(result.low).all()
    assert result.is_sure.tolist() == [False, True]


def test_steps_that_never_vary_differ_surely() -> None:
    result = differences(np.full((3, 2), 1.0), np.array([[1.0, 2.0]] * 3))
    assert result.is_sure.tolist() == [False, True]
