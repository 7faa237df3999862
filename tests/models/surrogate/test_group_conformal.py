import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate import LEVELS, LogLinearSurrogate, NotFittedError
from crosswind.models.surrogate.conformal import ConformalSurrogate
from crosswind.models.surrogate.group_conformal import GroupConformalSurrogate, GroupErrors


def noisy_and_quiet(count: int, seed: int = 0) -> tuple[pd.DataFrame, Floats]:
    """60 s, with 30 % noise in one workload and 1 % in the other."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"workload": rng.choice(["noisy", "quiet"], count), "ranks": 2.0 ** rng.integers(0, 5, count)})
    deviation = np.where(X["workload"] == "noisy", 0.3, 0.01)
    return X, 60 * np.exp(deviation * rng.standard_normal(count))


def test_a_large_group_speaks_for_itself() -> None:
    X = pd.DataFrame({"workload": ["a"] * 999 + ["b"] * 9})
    errors = np.concatenate([np.arange(999) / 999, np.full(9, 50.0)])
    quantiles = (
        GroupErrors(("workload",), borrowed=1e-6).fit(X, errors).quantiles(pd.DataFrame({"workload": ["a"]}), [0.9])
    )
    assert quantiles[0, 0] == pytest.approx(0.9, abs=0.001)  # the 900th of 999 errors


def test_a_small_group_moves_half_way_at_as_many_rows_as_it_borrows() -> None:
    X = pd.DataFrame({"workload": ["a"] * 980 + ["b"] * 20})
    errors = np.concatenate([np.zeros(980), np.ones(20)])
    quantiles = (
        GroupErrors(("workload",), borrowed=20).fit(X, errors).quantiles(pd.DataFrame({"workload": ["b", "c"]}), [0.9])
    )
    assert quantiles[:, 0].tolist() == pytest.approx([0.5, 0.0])


def test_numbers_are_grouped_by_two_doublings() -> None:
    X = pd.DataFrame({"ranks": [8.0] * 20 + [31.0] * 20 + [32.0] * 20})
    errors = np.repeat([0.0, 0.0, 1.0], 20)
    asked = pd.DataFrame({"ranks": [16.0, 64.0]})
    quantiles = GroupErrors(("ranks",), borrowed=1e-6).fit(X, errors).quantiles(asked, [0.5])
    assert quantiles[:, 0].tolist() == pytest.approx([0.0, 1.0], abs=1e-6)


def test_each_group_keeps_its_own_promise_where_one_correction_for_all_does_not() -> None:
    X, y = noisy_and_quiet(800)
    asked, truth = noisy_and_quiet(2000, seed=1)
    grouped = GroupConformalSurrogate(LogLinearSurrogate(), ("workload",)).fit(X, y).predict(asked)
    whole = ConformalSurrogate(LogLinearSurrogate()).fit(X, y).predict(asked)
    for workload in ("noisy", "quiet"):
        rows = (asked["workload"] == workload).to_numpy()
        inside = (grouped.at(0.05) <= truth) & (truth <= grouped.at(0.95))
        # 100 calibration rows a group: the coverage of a 0.9 band varies by sqrt(0.09 / 100) = 0.03; the quiet group
        # borrows 30 rows of wide errors on top, so it may cover all.
        assert inside[rows].mean() > 0.8
    noisy = (asked["workload"] == "noisy").to_numpy()
    width = np.log(grouped.at(0.95) / grouped.at(0.05))
    assert width[noisy].mean() > 2 * width[~noisy].mean()
    assert np.ptp(np.log(whole.at(0.95) / whole.at(0.05))) < 0.01


def test_quantiles_stand_at_the_agreed_levels() -> None:
    X, y = noisy_and_quiet(60)
    prediction = GroupConformalSurrogate(LogLinearSurrogate(), ("workload", "ranks")).fit(X, y).predict(X[:5])
    assert prediction.levels == LEVELS
    assert np.all(np.diff(prediction.values, axis=1) >= 0)


def test_bad_input_is_refused() -> None:
    X, y = noisy_and_quiet(60)
    with pytest.raises(NotFittedError, match="came before fit"):
        GroupConformalSurrogate(LogLinearSurrogate(), ("workload",)).predict(X)
    with pytest.raises(NotFittedError, match="came before fit"):
        GroupErrors(("workload",)).quantiles(X, [0.9])
    with pytest.raises(InvalidInputError, match="expected system"):
        GroupErrors(("workload", "system")).fit(X, y)
    with pytest.raises(InvalidInputError, match=r"errors have shape \(3,\) for 60 rows"):
        GroupErrors(("workload",)).fit(X, np.ones(3))
    with pytest.raises(InvalidInputError, match="n_calibration is 59 of 60 rows"):
        GroupConformalSurrogate(LogLinearSurrogate(), ("workload",), n_calibration=59).fit(X, y)
