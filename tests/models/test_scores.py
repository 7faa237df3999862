import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Prediction
from crosswind.models.scores import coverage, pinball_loss, skill

TWO_ROWS = Prediction((0.1, 0.9), np.array([[1.0, 3.0], [2.0, 4.0]]))


def test_pinball_loss_by_hand() -> None:
    # Row 1, truth 2: 0.1 x 1 and (1 - 0.9) x 1. Row 2, truth 5: 0.1 x 3 and 0.9 x 1.
    assert pinball_loss(TWO_ROWS, np.array([2.0, 5.0])) == pytest.approx((0.1 + 0.1 + 0.3 + 0.9) / 4)


def test_a_certain_and_right_prediction_loses_nothing() -> None:
    assert pinball_loss(Prediction((0.1, 0.9), np.array([[2.0, 2.0]])), np.array([2.0])) == 0


def test_coverage_counts_the_rows_between_two_levels_ends_included() -> None:
    assert coverage(TWO_ROWS, np.array([3.0, 5.0]), low=0.1, high=0.9) == 0.5


def test_skill_is_the_share_of_the_loss_that_is_gone() -> None:
    assert skill(0.6, 0.8) == pytest.approx(0.25)
    assert skill(1.0, 0.8) == pytest.approx(-0.25)


def test_there_is_no_skill_over_a_perfect_baseline() -> None:
    with pytest.raises(InvalidInputError, match="baseline loss is 0"):
        skill(0.1, 0.0)


@pytest.mark.parametrize("y", [np.array([1.0]), np.array([[1.0, 2.0]])])
def test_truth_of_another_shape_is_refused(y: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="y has shape"):
        pinball_loss(TWO_ROWS, y)
