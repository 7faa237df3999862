"""Features of small matrices whose answer is known by hand."""

import numpy as np
import pytest
from benchmarks.tuning_solvers.matrix_features import matrix_features
from scipy import sparse

from crosswind.data.schema.errors import InvalidInputError


def laplacian(rows: int) -> sparse.csr_array:
    return sparse.csr_array(sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(rows, rows)))


def test_a_laplacian_shows_itself() -> None:
    features = matrix_features(laplacian(100))
    assert features["log_rows"] == pytest.approx(np.log(100))
    assert features["nonzeros_per_row_mean"] == pytest.approx(2.98)
    assert features["is_symmetric"] == 1
    assert features["symmetric_pattern_ratio"] == 1
    assert features["positive_diagonal_ratio"] == 1
    assert features["dominant_ratio"] == 1
    assert features["strictly_dominant_ratio"] == pytest.approx(0.02)  # the two rows at the ends
    assert features["opposite_sign_ratio"] == 1
    assert features["log_bandwidth"] == pytest.approx(np.log(2))
    assert features["log_diagonal_range"] == 0
    assert features["ritz_real_min"] > 0


def test_a_triangle_is_not_symmetric_in_pattern_or_value() -> None:
    features = matrix_features(sparse.csr_array(np.triu(np.ones((10, 10)))))
    assert features["is_symmetric"] == 0
    assert features["symmetric_pattern_ratio"] == pytest.approx(10 / 55)
    assert features["asymmetry"] == pytest.approx(np.sqrt(90 / 55))


def test_a_shift_beyond_the_spectrum_s_end_is_seen_as_indefinite() -> None:
    shifted = laplacian(60) - sparse.eye_array(60)
    assert matrix_features(sparse.csr_array(shifted))["ritz_real_min"] < 0


def test_renumbering_leaves_what_does_not_depend_on_it() -> None:
    order = np.random.default_rng(0).permutation(400)
    straight = laplacian(400)
    before, after = matrix_features(straight), matrix_features(sparse.csr_array(straight[order][:, order]))
    assert after["log_bandwidth"] > before["log_bandwidth"]
    assert after["log_bandwidth_renumbered"] == pytest.approx(before["log_bandwidth_renumbered"])
    assert after["depth_exponent"] == pytest.approx(before["depth_exponent"])


@pytest.mark.parametrize("numbers", [np.zeros((3, 3)), np.diag([1.0, np.nan, 1.0]), np.diag([1.0, np.inf, 1.0])])
def test_what_cannot_be_solved_is_refused(numbers: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="expected at least one and all of them finite"):
        matrix_features(sparse.csr_array(numbers))


def test_a_matrix_that_is_not_square_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"shape \(2, 3\), expected a square sparse matrix"):
        matrix_features(sparse.csr_array(np.ones((2, 3))))


def test_zeros_on_the_diagonal_and_single_rows_have_finite_features() -> None:
    saddle = sparse.csr_array(np.array([[2.0, 1.0, 1.0], [1.0, 2.0, 0.0], [1.0, 0.0, 0.0]]))
    for matrix in (saddle, sparse.csr_array(np.array([[3.0]]))):
        assert all(np.isfinite(value) for value in matrix_features(matrix).values())
    assert matrix_features(saddle)["zero_diagonal_ratio"] == pytest.approx(1 / 3)
