import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Prediction
from crosswind.models.surrogate.exceedance import exceedance, seconds_at

ONE = Prediction((0.1, 0.5, 0.9, 0.99), np.array([[50.0, 60.0, 80.0, 100.0]]))


@pytest.mark.parametrize(("limit", "chance"), [(50, 0.9), (60, 0.5), (80, 0.1), (100, 0.01), (np.sqrt(60 * 80), 0.3)])
def test_at_a_quantile_the_chance_is_its_levels_and_linear_in_log_time_between(limit: float, chance: float) -> None:
    assert exceedance(ONE, limit)[0] == pytest.approx(chance)


def test_the_upper_tail_goes_on_as_the_outermost_levels_fell() -> None:
    # From 80 to 100 s the chance fell tenfold, so from 100 to 125 s, the same ratio, it falls tenfold again.
    assert exceedance(ONE, 125)[0] == pytest.approx(0.001)


def test_the_lower_tail_goes_on_as_the_outermost_levels_rose() -> None:
    # From 60 to 50 s the chance of a faster run fell fivefold, so by the same ratio again.
    assert exceedance(ONE, 50 * 50 / 60)[0] == pytest.approx(1 - 0.1 / 5)


@given(st.floats(1, 1e4), st.floats(1, 1e4))
def test_a_later_limit_is_never_more_likely_exceeded(first: float, second: float) -> None:
    early, late = exceedance(ONE, min(first, second))[0], exceedance(ONE, max(first, second))[0]
    assert 0 <= late <= early <= 1


def test_each_row_may_have_its_own_limit() -> None:
    two = Prediction((0.1, 0.9), np.array([[1.0, 2.0], [10.0, 20.0]]))
    assert exceedance(two, np.array([2.0, 20.0])).tolist() == pytest.approx([0.1, 0.1])


def test_a_certain_prediction_is_exceeded_or_not() -> None:
    certain = Prediction((0.1, 0.9), np.array([[5.0, 5.0]]))
    assert exceedance(certain, 4.99)[0] == pytest.approx(1)
    assert exceedance(certain, 5.01)[0] == pytest.approx(0)


@pytest.mark.parametrize(
    ("prediction", "limit", "message"),
    [
        (ONE, 0.0, "limits_seconds holds 0.0"),
        (ONE, np.nan, "limits_seconds holds nan"),
        (Prediction((0.5,), np.array([[5.0]])), 5.0, "at 1 levels"),
        (Prediction((0.1, 0.9), np.array([[0.0, 5.0]])), 5.0, "not positive"),
    ],
)
def test_what_has_no_chance_is_refused(prediction: Prediction, limit: float, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        exceedance(prediction, limit)


@given(st.floats(0.001, 0.999))
def test_the_time_of_a_level_is_exceeded_by_the_rest(level: float) -> None:
    assert exceedance(ONE, seconds_at(ONE, [level])[0, 0])[0] == pytest.approx(1 - level, abs=1e-9)


@pytest.mark.parametrize("level", [0.0, 1.0, np.nan])
def test_what_is_no_probability_between_0_and_1_has_no_time(level: float) -> None:
    with pytest.raises(InvalidInputError, match="expected probabilities between 0 and 1"):
        seconds_at(ONE, [0.5, level])
