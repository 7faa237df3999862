import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime
from tests.models.surrogate.scaling_runs import scaling_runs

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.surrogate import GaussianProcessSurrogate, NotFittedError
from crosswind.models.surrogate.mixed_kernel import MixedKernel, Points
from crosswind.models.surrogate.mixed_table import MixedTable


def test_the_gradient_is_the_slope_of_the_misfit() -> None:
    rng = np.random.default_rng(0)
    points = Points(rng.standard_normal((20, 2)), rng.integers(-1, 3, (20, 2)))
    kernel, y = MixedKernel(2, 2), rng.standard_normal(20)
    theta = kernel.priors.means + 0.3 * rng.standard_normal(len(kernel.priors.means))
    _, gradient = kernel.misfit(theta, points, y)
    slope = approx_fprime(theta, lambda parameters: kernel.misfit(parameters, points, y)[0], 1e-6)
    assert gradient == pytest.approx(slope, rel=1e-3, abs=1e-3)  # forward differences of 1e-6


def test_a_row_varies_with_itself_as_the_variances_say() -> None:
    rng = np.random.default_rng(0)
    points = Points(rng.standard_normal((7, 3)), rng.integers(0, 2, (7, 2)))
    kernel = MixedKernel(3, 2)
    covariance = kernel.covariance(kernel.priors.means, points, points)
    assert np.diag(covariance) == pytest.approx(kernel.variances(kernel.priors.means, points))
    assert np.all(np.linalg.eigvalsh(covariance) > -1e-9)


def test_it_extrapolates_a_power_law_eightfold() -> None:
    X, seconds = scaling_runs(80)
    asked = pd.DataFrame({"ranks": [256.0, 256.0], "device": ["fast", "slow"]})
    fast, slow = GaussianProcessSurrogate().fit(X, seconds).predict(asked).at(0.5)
    # 1000 / 256 and twice that; the slope of a 2 % noise over 5 doublings is known to far better than 20 %.
    assert fast == pytest.approx(1000 / 256, rel=0.2)
    assert slow == pytest.approx(2000 / 256, rel=0.2)


def test_far_from_the_rows_the_band_is_wider() -> None:
    X, seconds = scaling_runs(80)
    asked = pd.DataFrame({"ranks": [8.0, 4096.0], "device": ["fast", "fast"]})
    prediction = GaussianProcessSurrogate().fit(X, seconds).predict(asked)
    near, far = np.log(prediction.at(0.95) / prediction.at(0.05))
    assert far > 2 * near


def test_answers_of_left_out_rows_are_those_of_the_posterior_without_them() -> None:
    X, seconds = scaling_runs(40)
    asked = np.arange(40) % 4 == 0
    model = GaussianProcessSurrogate().fit(X, seconds)
    # Rasmussen and Williams 2006, section 5.4.2, for a group of rows: from the inverse covariance of all of them.
    block = model._inverse[np.ix_(asked, asked)]
    shift = np.linalg.solve(block, model._weights[asked]) * model._scale
    assert model.held_out(~asked, asked) == pytest.approx(seconds[asked] / np.exp(shift), rel=1e-6)


def test_one_absurd_row_hardly_moves_what_is_said_elsewhere() -> None:
    X, seconds = scaling_runs(80)
    wrong = seconds.copy()
    wrong[3] *= 100
    asked = pd.DataFrame({"ranks": [2.0, 16.0], "device": ["fast", "slow"]})
    right = GaussianProcessSurrogate().fit(X, seconds).predict(asked).at(0.5)
    assert GaussianProcessSurrogate().fit(X, wrong).predict(asked).at(0.5) == pytest.approx(right, rel=0.25)


def test_only_the_newest_rows_are_kept_and_of_others_nothing_is_known() -> None:
    X, seconds = scaling_runs(50)
    asked = np.arange(50) % 2 == 0
    held_out = GaussianProcessSurrogate(n_kept=30).fit(X, seconds).held_out(~asked, asked)
    assert np.isnan(held_out).tolist() == [True] * 10 + [False] * 15


def test_holding_out_before_fitting_or_with_masks_of_other_rows_are_refused() -> None:
    three = np.ones(3, dtype=np.bool_)
    with pytest.raises(NotFittedError, match="held_out came before fit"):
        GaussianProcessSurrogate().held_out(three, three)
    X, seconds = scaling_runs(10)
    with pytest.raises(InvalidInputError, match=r"shapes \(3,\) and \(3,\), expected \(10,\)"):
        GaussianProcessSurrogate().fit(X, seconds).held_out(three, three)


def test_a_number_of_a_wide_range_acts_by_its_logarithm() -> None:
    table = MixedTable.of(pd.DataFrame({"ranks": [1.0, 2, 4, 8], "year": [2020.0, 2021, 2022, 2023]}))
    assert table.logged == (True, False)
    assert np.diff(table.points(pd.DataFrame({"ranks": [1.0, 2, 4], "year": 2020.0})).numbers[:, 0]) == pytest.approx(
        np.log(2) / np.std(np.log([1, 2, 4, 8]))
    )


def test_missing_numbers_and_unknown_categories_stand_in_the_middle() -> None:
    X = pd.DataFrame({"ranks": [1.0, 2.0, np.nan], "device": ["a", "", "b"], "constant": [3.0, 3.0, 3.0]})
    X.loc[1, "device"] = None
    points = MixedTable.of(X).points(X.assign(constant=7.0).replace({"device": {"b": "c"}}))
    assert points.numbers[2, 0] == 0
    assert points.numbers[:, 1].tolist() == [0, 0, 0]
    assert points.codes[:, 0].tolist() == [0, -1, -1]
