from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.surrogate import LEVELS, NotFittedError
from crosswind.models.surrogate.conformal import (
    ConformalSurrogate,
    calibration_rows,
    conformal_quantile,
    promised_coverage,
)


@dataclass
class Overconfident:
    """Says 1 at every level, and remembers how many rows it was given."""

    rows: int = 0

    def fit(self, X: pd.DataFrame, y: Floats) -> Self:
        self.rows = len(y)
        return self

    def predict(self, X: pd.DataFrame) -> Prediction:
        return Prediction(LEVELS, np.ones((len(X), len(LEVELS))))


def test_five_rows_cannot_promise_ninety_percent() -> None:
    assert promised_coverage(5) == pytest.approx(4 / 6)
    assert promised_coverage(18) < 0.9
    assert promised_coverage(19) == pytest.approx(0.9)


def test_no_rows_or_one_promise_nothing() -> None:
    assert promised_coverage(0) == promised_coverage(1) == 0


def test_the_largest_of_nineteen_errors_is_their_upper_end() -> None:
    errors = np.arange(1.0, 20.0)
    assert conformal_quantile(errors, 0.95) == 19
    assert conformal_quantile(errors, 0.05) == 1
    assert conformal_quantile(errors, 0.9) == 18
    assert conformal_quantile(errors, 0.5) == 10


def test_a_level_beyond_the_promise_lies_beyond_every_error() -> None:
    errors = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert conformal_quantile(errors, 0.95) > 5
    assert conformal_quantile(errors, 0.05) < 1
    assert conformal_quantile(errors, 0.75) == 5  # rank ceil(6 x 0.75) = 5


@pytest.mark.parametrize(("n_rows", "expected"), [(4, 2), (10, 5), (38, 19), (40, 19), (76, 19), (200, 50)])
def test_enough_rows_calibrate_for_ninety_percent_but_never_more_than_half(n_rows: int, expected: int) -> None:
    assert calibration_rows(n_rows) == expected


def test_the_first_rows_train_and_the_last_calibrate() -> None:
    inner = Overconfident()
    y = np.array([9.0] * 10 + [2.0] * 10)
    model = ConformalSurrogate(inner, n_calibration=10).fit(pd.DataFrame(np.zeros((20, 1))), y)
    assert inner.rows == 10
    assert model.predict(pd.DataFrame(np.zeros((1, 1)))).values == pytest.approx(2.0)  # no 9 was seen in calibration
    assert model.promised_coverage == pytest.approx(9 / 11)


@pytest.mark.thorough
def test_coverage_is_what_was_promised() -> None:
    """The 90 % interval of a useless model, calibrated on 39 rows, covers 90 % of 4000 next rows, each with a new fit.

    The expected coverage of the ranks (2 and 38 of 39) is exactly 36 / 40 = 0.9; the share of 4000 independent rows has
    a standard error of sqrt(0.9 x 0.1 / 4000) = 0.0047, so 0.02 is four of them: one false alarm in 15 000 seeds.
    """
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(4000):
        y = np.exp(rng.standard_t(3, size=44))
        model = ConformalSurrogate(Overconfident(), n_calibration=39).fit(pd.DataFrame(np.zeros((43, 1))), y[:-1])
        prediction = model.predict(pd.DataFrame(np.zeros((1, 1))))
        covered += int(prediction.at(0.05)[0] <= y[-1] <= prediction.at(0.95)[0])
    assert covered / 4000 == pytest.approx(0.9, abs=0.02)


def test_every_one_sided_level_is_kept() -> None:
    """Levels above one half are reached at least, those below at most; 0.025 is four standard errors at one half."""
    rng = np.random.default_rng(1)
    below = np.zeros(len(LEVELS))
    for _ in range(3000):
        errors = rng.standard_normal(24)
        below += rng.standard_normal() <= np.array([conformal_quantile(errors, level) for level in LEVELS])
    shares = dict(zip(LEVELS, below / 3000, strict=True))
    tolerance = {level: 4 * np.sqrt(level * (1 - level) / 3000) for level in LEVELS}
    assert all(shares[level] >= level - tolerance[level] for level in LEVELS if level >= 0.5)
    assert all(shares[level] <= level + tolerance[level] for level in LEVELS if level <= 0.5)


@pytest.mark.parametrize("n_calibration", [0, 1, 9, 10])
def test_a_split_that_leaves_a_part_too_small_is_refused(n_calibration: int) -> None:
    model = ConformalSurrogate(Overconfident(), n_calibration=n_calibration)
    with pytest.raises(InvalidInputError, match=f"n_calibration is {n_calibration} of 10 rows, expected 2 to 8"):
        model.fit(pd.DataFrame(np.zeros((10, 1))), np.ones(10))


def test_there_is_no_promise_before_fitting() -> None:
    with pytest.raises(NotFittedError, match="promised_coverage came before fit"):
        _ = ConformalSurrogate(Overconfident()).promised_coverage


def test_one_error_is_too_few() -> None:
    with pytest.raises(InvalidInputError, match="1 calibration errors"):
        conformal_quantile(np.array([0.0]), 0.9)
