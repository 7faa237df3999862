import numpy as np
import pytest

from crosswind.models.surrogate import LEVELS
from crosswind.models.surrogate.log_errors import quantiles_of_groups
from crosswind.models.surrogate.log_normal import scores

LOW, HIGH = LEVELS.index(0.05), LEVELS.index(0.95)


def test_without_a_group_the_band_is_the_guess() -> None:
    nothing = quantiles_of_groups(np.empty(0), np.empty(0, dtype=np.int64), 0.5)
    assert nothing == pytest.approx(0.5 * scores(LEVELS), abs=0.02)  # of 200 equally likely guesses


def test_many_groups_leave_little_of_the_guess() -> None:
    random = np.random.default_rng(0)
    many = quantiles_of_groups(random.normal(0, 0.1, 1000), np.arange(1000), 1.0)
    # The 5 % quantile of 1000 errors has a standard deviation of 0.007 at 0.164; the guess adds a thousandth.
    assert (many[LOW], many[HIGH]) == pytest.approx((-0.164, 0.164), abs=0.025)


def test_a_group_of_many_rows_counts_no_more_than_one_of_few() -> None:
    """Errors of 0.1 in one group of a hundred rows, and of -0.1 in ten groups of one row."""
    errors = np.concatenate([np.full(100, 0.1), np.full(10, -0.1)])
    groups = np.concatenate([np.zeros(100, dtype=np.int64), np.arange(1, 11)])
    assert quantiles_of_groups(errors, groups, 0.01)[LEVELS.index(0.5)] == pytest.approx(-0.1)


def test_few_groups_are_wider_than_their_own_errors() -> None:
    groups = np.repeat(np.arange(3), 50)
    band = quantiles_of_groups(np.zeros(150), groups, 1.0)
    assert band[LOW] < -0.5
    assert band[HIGH] > 0.5
