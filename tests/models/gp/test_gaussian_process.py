import numpy as np
import pytest
from scipy.optimize import check_grad

from crosswind.models.gp.gaussian_process import Process, misfit
from crosswind.models.gp.gp import Correlation, matern_with_slope, rough_matern_with_slope, square_gaps


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 2))


@pytest.mark.parametrize("correlation", [matern_with_slope, rough_matern_with_slope])
def test_the_slope_of_the_misfit_is_its_derivative(correlation: Correlation) -> None:
    X = rows(12)
    y = np.sin(3 * X[:, 0])
    gaps = square_gaps(X)
    theta = np.array([0.2, -0.3, 0.4, -2.0])
    error = check_grad(
        lambda at: misfit(at, gaps, y, correlation=correlation)[0],
        lambda at: misfit(at, gaps, y, correlation=correlation)[1],
        theta,
    )
    assert error < 1e-4  # forward differences with steps of 1.5e-8


def test_a_process_goes_through_smooth_values_and_is_unsure_far_away() -> None:
    X = rows(30)
    y = X[:, 0] - X[:, 1]
    process = Process.fitted(X, y)
    mean, deviation = process.predict(np.vstack([X, [[9.0, 9.0]]]))
    assert np.abs(mean[:-1] - y).max() < 0.1
    assert deviation[-1] > 3 * deviation[:-1].max()


def test_leaving_one_out_is_the_same_as_fitting_without_it() -> None:
    X = rows(10)
    y = np.cos(4 * X[:, 0])
    theta = np.log([1.0, 0.5, 0.5, 0.01])
    mean, _ = Process.given(theta, X, y).left_out()
    without = Process.given(theta, X[1:], y[1:]).predict(X[:1])[0][0]
    assert mean[0] == pytest.approx(without, abs=1e-6)


def test_believing_changes_no_expectation_but_lowers_the_doubt() -> None:
    process = Process.given(np.log([1.0, 0.5, 0.5, 0.01]), rows(6), np.arange(6.0))
    there = np.array([[0.5, 0.5]])
    believing = process.believing(there)
    assert believing.predict(there)[0] == pytest.approx(process.predict(there)[0], abs=1e-6)
    assert believing.predict(there)[1] < process.predict(there)[1]
