"""A Gaussian process that tells noise from a rough objective by repeats."""

import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.gp import repeated_process
from crosswind.models.gp.repeated_process import RepeatedProcess


def smooth(X: Floats) -> Floats:
    return np.asarray(np.sin(3 * X[:, 0]) + X[:, 1] ** 2, np.float64)


def measured(noise: float, repeats: int, n: int = 25, seed: int = 0) -> tuple[Floats, list[Floats]]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, [value + noise * rng.standard_normal(repeats) for value in smooth(X)]


def test_the_gradient_is_that_of_the_likelihood() -> None:
    X, groups = measured(0.1, 3, n=8)
    rows = repeated_process._standardised(X, groups, np.linspace(0.5, 1.5, 8))
    theta = np.array([0.3, -0.4, 0.6, -4.0, -3.0])

    def value(at: Floats) -> float:
        return repeated_process._misfit(rows, at)[0]

    numeric = [(value(theta + step) - value(theta - step)) / 2e-6 for step in 1e-6 * np.eye(5)]
    assert repeated_process._misfit(rows, theta)[1] == pytest.approx(numeric, rel=1e-5)


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.3])
def test_repeats_tell_the_noise(noise: float) -> None:
    X, groups = measured(noise, 4)
    # 75 degrees of freedom: the standard error of the estimate is 8 %.
    assert RepeatedProcess.of(X, groups, expected_noise=0.03).noise == pytest.approx(noise, rel=0.25)


def test_more_repeats_are_surer_of_the_noise() -> None:
    X, groups = measured(0.1, 4)
    many, few = (RepeatedProcess.of(X, values, expected_noise=0.03) for values in (groups, [g[:1] for g in groups]))
    assert many.noise_degrees > 2 * few.noise_degrees
    assert 50 < many.noise_degrees < 150  # 75 repeats and a share of 25 residuals


def test_without_noise_the_process_passes_through_the_values() -> None:
    X, groups = measured(0.0, 1)
    process = RepeatedProcess.of(X, groups, expected_noise=0.03)
    assert process.noise < 0.02
    assert process.predict(X)[0] == pytest.approx(smooth(X), abs=0.03)


def test_repeats_tell_noise_from_a_rough_objective() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    rough = 0.2 * rng.standard_normal(40)
    groups = [value + 0.05 * rng.standard_normal(3) for value in smooth(X) + rough]
    process = RepeatedProcess.of(X, groups, expected_noise=0.03)
    assert process.noise == pytest.approx(0.05, rel=0.25)  # 80 degrees of freedom: standard error 8 %
    assert np.abs(process.at_measured()[0] - smooth(X) - rough).mean() < 0.05
    assert process.predict(X)[1].min() > 0.1  # of others at the same places


def test_draws_have_the_posterior_s_mean() -> None:
    process = RepeatedProcess.of(*measured(0.1, 2), expected_noise=0.03)
    draws = process.draws(2400, seed=1)
    assert draws.shape == (2400, 25)
    assert draws.mean(axis=0) == pytest.approx(process.at_measured()[0], abs=0.05)


@pytest.mark.thorough
def test_draws_cover_the_truth() -> None:
    covered = []
    for seed in range(20):
        X, groups = measured(0.1, 2, seed=seed)
        draws = RepeatedProcess.of(X, groups, expected_noise=0.03).draws(480, seed)
        low, high = np.quantile(draws, [0.05, 0.95], axis=0)
        covered.append(np.mean((low <= smooth(X)) & (smooth(X) <= high)))
    # Errors within one data set go together; over 20 of them the mean of 90 % scatters by about 3 %.
    assert 0.82 <= np.mean(covered) <= 0.98


def test_draws_repeat_with_their_seed() -> None:
    process = RepeatedProcess.of(*measured(0.1, 2), expected_noise=0.03)
    assert np.array_equal(process.draws(100, seed=3), process.draws(100, seed=3))
    assert not np.array_equal(process.draws(100, seed=3), process.draws(100, seed=4))


def test_believing_lowers_the_doubt_and_keeps_the_mean() -> None:
    process = RepeatedProcess.of(*measured(0.1, 2), expected_noise=0.03)
    X = np.array([[1.5, 1.5]])
    believed = process.believing(X)
    assert believed.predict(X)[0] == pytest.approx(process.predict(X)[0], abs=0.02)
    assert believed.predict(X)[1] < 0.7 * process.predict(X)[1]
    assert process.believing(X[:0]) is process


def test_one_value_is_enough() -> None:
    process = RepeatedProcess.of(np.zeros((1, 2)), [np.array([4.0])], expected_noise=0.1)
    assert process.predict(np.zeros((1, 2)))[0] == pytest.approx([4.0], abs=0.01)
    assert process.draws(48, seed=0).shape == (48, 1)


@pytest.mark.parametrize("groups", [[], [np.array([])], [np.array([np.nan])], [np.array([np.inf, 1.0])]])
def test_values_that_are_none_are_refused(groups: list[Floats]) -> None:
    with pytest.raises(InvalidInputError, match="expected"):
        RepeatedProcess.of(np.zeros((len(groups), 1)), groups, expected_noise=0.1)
