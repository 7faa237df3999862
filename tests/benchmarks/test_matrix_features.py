"""Features of small matrices whose answer is known by hand."""

import numpy as np
import pytest
from benchmarks.tuning_solvers.matrix_features import further_features, matrix_features
from benchmarks.tuning_solvers.matrix_rows import Entries
from scipy import sparse

from crosswind.data.schema.errors import InvalidInputError


def laplacian(rows: int) -> sparse.csr_array:
    return sparse.csr_array(sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(rows, rows)))


def test_a_laplacian_shows_itself() -> None:
    features = matrix_features(laplacian(5000))
    assert features["log_rows"] == pytest.approx(np.log(5000))
    assert features["nonzeros_per_row_mean"] == pytest.approx(3, abs=0.001)
    assert features["is_symmetric"] == 1
    assert features["symmetric_pattern_ratio"] == 1
    assert features["positive_diagonal_ratio"] == 1
    assert features["dominant_ratio"] == 1
    assert features["strictly_dominant_ratio"] < 0.05  # the two rows at the ends
    assert features["opposite_sign_ratio"] == 1
    assert features["log_distance_max"] == pytest.approx(np.log(2))
    assert features["log_diagonal_range"] == 0
    assert features["curvature_min"] > 0
    assert features["depth_exponent"] > 0.9


def test_a_triangle_is_not_symmetric_in_pattern_or_value() -> None:
    features = matrix_features(sparse.csr_array(np.triu(np.ones((10, 10)))))
    assert features["is_symmetric"] == 0
    assert features["symmetric_pattern_ratio"] < 0.4
    assert features["asymmetry"] > 0.3


def test_one_entry_that_the_sampled_rows_miss_still_shows_that_a_matrix_is_not_symmetric() -> None:
    matrix = laplacian(5000).tolil()
    matrix[1234, 4000] = 1e-3
    features = matrix_features(sparse.csr_array(matrix))
    assert features["symmetric_pattern_ratio"] == 1
    assert features["is_symmetric"] == 0


def test_a_shift_beyond_the_spectrum_s_end_is_seen_as_indefinite() -> None:
    shifted = sparse.csr_array(laplacian(60) - sparse.eye_array(60))
    assert matrix_features(shifted)["curvature_min"] < 0


def test_renumbering_leaves_what_does_not_depend_on_it() -> None:
    order = np.random.default_rng(0).permutation(400)
    straight = laplacian(400)
    before, after = matrix_features(straight), matrix_features(sparse.csr_array(straight[order][:, order]))
    assert after["log_distance_mean"] > before["log_distance_mean"]
    assert after["log_level_max"] == pytest.approx(before["log_level_max"], abs=np.log(2))
    assert after["log_products"] == pytest.approx(before["log_products"], abs=0.5)


def test_sampled_entries_are_those_of_the_rows() -> None:
    matrix = sparse.csr_array(np.array([[1.0, 2.0, 3.0], [0.0, 4.0, 0.0], [5.0, 0.0, 6.0]]))
    entries = Entries.of(matrix, np.array([2, 0, 0]), most=2)
    assert entries.value.tolist() == [5, 6, 1, 2, 1, 2]
    assert entries.column.tolist() == [0, 2, 0, 1, 0, 1]
    assert entries.sums(entries.value).tolist() == [11, 3, 3]


@pytest.mark.parametrize("numbers", [np.zeros((3, 3)), np.diag([1.0, np.nan, 1.0]), np.diag([1.0, np.inf, 1.0])])
def test_what_cannot_be_solved_is_refused(numbers: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="expected all finite and at least one not zero"):
        matrix_features(sparse.csr_array(numbers))


def test_a_matrix_that_is_not_square_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"shape \(2, 3\), expected a square sparse matrix"):
        matrix_features(sparse.csr_array(np.ones((2, 3))))


def test_zeros_on_the_diagonal_and_single_rows_have_finite_features() -> None:
    saddle = sparse.csr_array(np.array([[2.0, 1.0, 1.0], [1.0, 2.0, 0.0], [1.0, 0.0, 0.0]]))
    for matrix in (saddle, sparse.csr_array(np.array([[3.0]]))):
        features = further_features(matrix, matrix_features(matrix))
        assert all(np.isfinite(value) for value in features.values()), features
    assert 0 < matrix_features(saddle)["zero_diagonal_ratio"] < 1
