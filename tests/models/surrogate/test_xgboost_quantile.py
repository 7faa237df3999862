import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate import XgboostQuantileSurrogate


def table(values: Floats) -> pd.DataFrame:
    return pd.DataFrame({"level": values})


def test_two_rows_are_enough() -> None:
    prediction = (
        XgboostQuantileSurrogate().fit(table(np.array([0.0, 1.0])), np.array([1.0, 2.0])).predict(table(np.zeros(1)))
    )
    assert 1 <= prediction.at(0.5)[0] <= 2


def test_a_constant_objective_comes_back() -> None:
    prediction = XgboostQuantileSurrogate().fit(table(np.zeros(10)), np.full(10, 3.0)).predict(table(np.zeros(1)))
    assert prediction.values == pytest.approx(3.0, rel=1e-5)


def test_the_quantiles_widen_where_the_noise_does() -> None:
    rng = np.random.default_rng(0)
    levels = rng.integers(2, size=600).astype(np.float64)
    y = np.exp(np.where(levels == 0, 0.02, 0.4) * rng.standard_normal(600))
    quiet, noisy = XgboostQuantileSurrogate().fit(table(levels), y).predict(table(np.array([0.0, 1.0]))).values
    assert noisy[-1] / noisy[0] > 2 * quiet[-1] / quiet[0]  # in truth exp(1.32) = 3.7 and exp(0.066) = 1.07


def test_the_errors_are_ratios_so_the_unit_does_not_matter() -> None:
    X = table(np.arange(40.0))
    y = 1 + np.arange(40.0) % 7
    in_seconds = XgboostQuantileSurrogate().fit(X, y).predict(X).values
    in_milliseconds = XgboostQuantileSurrogate().fit(X, 1000 * y).predict(X).values
    assert in_milliseconds == pytest.approx(1000 * in_seconds, rel=1e-3)  # the booster works in 32 bits
