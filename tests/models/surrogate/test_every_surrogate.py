"""Promises of every surrogate."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate import LEVELS, SURROGATES, NotFittedError, Surrogate
from crosswind.models.surrogate.conformal import ConformalSurrogate

MakeSurrogate = Callable[[int], Surrogate]


def _calibrated(seed: int) -> Surrogate:
    return ConformalSurrogate(SURROGATES[0](seed))


EVERY = pytest.mark.parametrize("make", [*SURROGATES, _calibrated])


def table(values: object) -> pd.DataFrame:
    return pd.DataFrame(np.array(values, dtype=np.float64), columns=["doublings", "nothing"])


def rows(count: int, seed: int = 0) -> tuple[pd.DataFrame, Floats]:
    """Seconds that double with the first column and have 10 % noise; the second column means nothing."""
    rng = np.random.default_rng(seed)
    X = table(rng.uniform(0, 3, size=(count, 2)))
    return X, 2 ** X["doublings"].to_numpy() * np.exp(0.1 * rng.standard_normal(count))


@EVERY
def test_quantiles_stand_at_the_agreed_levels_and_do_not_cross(make: MakeSurrogate) -> None:
    X, y = rows(60)
    prediction = make(0).fit(X, y).predict(X[:7])
    assert prediction.levels == LEVELS
    assert prediction.values.shape == (7, len(LEVELS))
    assert np.all(prediction.values > 0)


@EVERY
def test_it_learns_what_the_objective_depends_on(make: MakeSurrogate) -> None:
    X, y = rows(400)
    low, high = make(0).fit(X, y).predict(table([[0.3, 1.0], [2.7, 1.0]])).at(0.5)
    # 2^0.3 = 1.2 and 2^2.7 = 6.5; noise of 10 % and trees' steps leave the medians within 25 %.
    assert low == pytest.approx(2**0.3, rel=0.25)
    assert high == pytest.approx(2**2.7, rel=0.25)


@EVERY
def test_the_same_seed_and_rows_give_the_same_prediction(make: MakeSurrogate) -> None:
    X, y = rows(60)
    first, second = (make(3).fit(X, y).predict(X) for _ in range(2))
    assert np.array_equal(first.values, second.values)


@EVERY
def test_missing_values_are_allowed(make: MakeSurrogate) -> None:
    X, y = rows(60)
    X.iloc[::3, 0] = np.nan
    assert np.all(np.isfinite(make(0).fit(X, y).predict(table([[np.nan, 1.0]])).values))


@EVERY
def test_asking_before_fitting_is_refused(make: MakeSurrogate) -> None:
    with pytest.raises(NotFittedError, match="came before fit"):
        make(0).predict(table([[0, 0]]))


@EVERY
def test_no_configurations_give_no_predictions(make: MakeSurrogate) -> None:
    assert make(0).fit(*rows(20)).predict(table(np.empty((0, 2)))).values.shape == (0, len(LEVELS))


@EVERY
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (table(np.zeros((1, 2))), np.ones(1), "1 training rows, expected at least"),
        (table(np.zeros((9, 2))), np.ones(8), r"X has shape \(9, 2\) and y \(8,\)"),
        (table(np.zeros((9, 2))), np.array([1.0] * 8 + [0.0]), r"y\[8\] is 0.0, expected a positive number"),
        (table(np.zeros((9, 2))), np.array([np.nan] + [1.0] * 8), r"y\[0\] is nan"),
        (table(np.full((9, 2), np.inf)), np.ones(9), "infinite"),
    ],
)
def test_rows_that_cannot_be_learned_from_are_refused(
    make: MakeSurrogate, X: pd.DataFrame, y: Floats, message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make(0).fit(X, y)


@EVERY
def test_a_table_of_other_columns_is_refused(make: MakeSurrogate) -> None:
    model = make(0).fit(*rows(20))
    with pytest.raises(InvalidInputError, match="has the columns doublings, expected doublings, nothing as in fit"):
        model.predict(table([[0, 0]])[["doublings"]])


@EVERY
def test_texts_are_categories_and_one_never_seen_is_none_of_them(make: MakeSurrogate) -> None:
    X = pd.DataFrame({"precision": ["fp32", "bf16"] * 40, "batch": [8.0] * 80})
    y = np.where(X["precision"] == "fp32", 2.0, 1.0) * np.exp(0.01 * np.random.default_rng(0).standard_normal(80))
    asked = pd.DataFrame({"precision": ["fp32", "bf16", "fp8", None], "batch": [8.0] * 4})
    slow, fast, *unseen = make(0).fit(X, y).predict(asked).at(0.5)
    assert slow == pytest.approx(2.0, rel=0.1)
    assert fast == pytest.approx(1.0, rel=0.1)
    assert all(0.9 < seconds < 2.2 for seconds in unseen)


@EVERY
def test_four_rows_are_enough(make: MakeSurrogate) -> None:
    X, y = rows(4)
    assert np.all(np.isfinite(make(0).fit(X, y).predict(X).values))
