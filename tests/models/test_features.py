import math

import numpy as np
import pytest

from crosswind.data.errors import InvalidInputError
from crosswind.models.features import Encoder

SEEN = [{"batch": 8, "precision": "fp32", "fused": True}, {"batch": 16, "precision": "bf16", "rate": 0.1}]


def test_columns_are_sorted_and_categories_spelled_out() -> None:
    assert Encoder.of(SEEN).columns == ("batch", "fused", "precision=bf16", "precision=fp32", "rate")


def test_values_become_numbers_and_missing_ones_nan() -> None:
    expected = [[8, 1, 0, 1, math.nan], [16, math.nan, 1, 0, 0.1]]
    assert np.array_equal(Encoder.of(SEEN).encode(SEEN), np.array(expected), equal_nan=True)


def test_an_unseen_category_is_zero_everywhere_and_an_unknown_parameter_left_out() -> None:
    [row] = Encoder.of(SEEN).encode([{"batch": 8, "precision": "fp8", "colour": "red"}])
    assert row[2:4].tolist() == [0, 0]
    assert len(row) == 5


def test_a_missing_category_is_nan_everywhere() -> None:
    [row] = Encoder.of(SEEN).encode([{"batch": 8, "precision": None}])
    assert np.isnan(row[2:4]).all()


def test_numbers_beside_a_text_are_categories() -> None:
    encoder = Encoder.of([{"workers": 4}, {"workers": "auto"}])
    assert encoder.columns == ("workers=4", "workers=auto")
    assert encoder.encode([{"workers": 4}]).tolist() == [[1, 0]]


def test_no_configurations_and_no_parameters_keep_their_shape() -> None:
    assert Encoder.of(SEEN).encode([]).shape == (0, 5)
    assert Encoder.of([{}]).encode([{}, {}]).shape == (2, 0)


def test_a_text_in_a_numbers_place_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="parameter batch is '32', expected a number"):
        Encoder.of(SEEN).encode([{"batch": "32"}])


@pytest.mark.parametrize(("value", "message"), [([1], "expected a number, a text"), (math.inf, "finite")])
def test_what_is_no_scalar_is_refused(value: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=f"parameter batch is .*{message}"):
        Encoder.of([{"batch": value}])  # type: ignore[dict-item]
