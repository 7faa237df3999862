"""The Pareto front and the volume that it dominates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.models.tuner.search.pareto.hypervolume import hypervolume

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.tuner.study.front import on_front, reference

ROWS = st.integers(1, 4).flatmap(
    lambda width: arrays.arrays(
        np.float64, st.tuples(st.integers(1, 12), st.just(width)), elements=st.integers(0, 5).map(float)
    )
)


def dominates(a: Floats, b: Floats) -> bool:
    return bool(np.all(a <= b) and np.any(a < b))


@given(ROWS)
def test_rows_on_the_front_are_those_that_no_other_dominates(values: Floats) -> None:
    is_on = on_front(values)
    for index, row in enumerate(values):
        beaten = any(dominates(other, row) for other in values)
        repeated = any(np.array_equal(other, row) for other in values[:index])
        assert is_on[index] == (not beaten and not repeated)


@given(ROWS)
def test_volume_counts_the_dominated_cells(values: Floats) -> None:
    behind = np.full(values.shape[1], 6.0)
    cells = np.stack(np.meshgrid(*[np.arange(6)] * values.shape[1], indexing="ij"), axis=-1).reshape(
        -1, values.shape[1]
    )
    dominated = np.any(np.all(values[None] <= cells[:, None], axis=2), axis=1)
    assert hypervolume(values, behind) == pytest.approx(dominated.sum())


def test_rows_behind_the_reference_dominate_nothing() -> None:
    assert hypervolume(np.array([[1.0, 7.0], [7.0, 1.0]]), np.array([6.0, 6.0])) == 0.0


def test_the_reference_lies_behind_the_front_by_its_extent_over_the_gaps_between_its_rows() -> None:
    front = np.array([[1.0, 30.0], [2.0, 10.0]])
    assert reference(front, front) == pytest.approx([3.0, 50.0])
    many = np.array([[1.0, 9.0], [2.0, 4.0], [3.0, 3.0], [4.0, 2.0], [5.0, 1.0]])
    assert reference(many, many) == pytest.approx([7.0, 13.0])  # half of it, once there are many


def test_the_reference_of_one_point_takes_the_extent_of_everything() -> None:
    front = np.array([[1.0, 10.0]])
    assert reference(front, np.array([[1.0, 10.0], [3.0, 10.0]])) == pytest.approx([3.0, 11.0])


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="finite"):
        on_front(np.array([[1.0, np.nan]]))
