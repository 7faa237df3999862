"""Probes of matrices whose costs are known from theory."""

import numpy as np
import pytest
from benchmarks.tuning_solvers.matrix_features import matrix_features
from benchmarks.tuning_solvers.matrix_probes import without_hubs
from scipy import sparse


def line(rows: int) -> sparse.csr_array:
    return sparse.csr_array(sparse.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(rows, rows)))


def grid(across: int, dimensions: int) -> sparse.csr_array:
    one, total = sparse.eye_array(across), line(across)
    for _ in range(dimensions - 1):
        total = sparse.kron(total, one) + sparse.kron(sparse.eye_array(total.shape[0]), line(across))
    return sparse.csr_array(total)


def test_fill_grows_faster_on_a_surface_than_on_a_line_and_in_a_body_than_on_a_surface() -> None:
    growth = [matrix_features(matrix)["fill_growth"] for matrix in (line(4096), grid(64, 2), grid(16, 3))]
    assert growth[0] == pytest.approx(0, abs=0.25)
    assert growth[0] + 0.2 < growth[1] < growth[2] - 0.2


def test_a_better_conditioned_matrix_needs_fewer_products() -> None:
    hard = matrix_features(grid(40, 2))
    easy = matrix_features(sparse.csr_array(grid(40, 2) + 10 * sparse.eye_array(1600)))
    assert easy["log_products_plain"] < np.log(25) < hard["log_products_plain"]
    assert easy["log_direct_to_plain"] > hard["log_direct_to_plain"] + 1


def test_a_matrix_badly_scaled_by_rows_is_easy_with_division_by_the_diagonal() -> None:
    scale = sparse.diags_array(10.0 ** np.linspace(-3, 3, 900))
    features = matrix_features(sparse.csr_array(scale @ (grid(30, 2) + 4 * sparse.eye_array(900)) @ scale))
    assert features["log_products_jacobi"] < features["log_products_plain"] - 1


def test_products_are_counted_alike_where_the_matrix_is_not_symmetric() -> None:
    skew = sparse.csr_array(grid(30, 2) + sparse.diags_array([0.3, -0.3], offsets=[-1, 1], shape=(900, 900)))
    straight = matrix_features(grid(30, 2))
    assert matrix_features(skew)["log_products_plain"] == pytest.approx(straight["log_products_plain"], abs=1.5)


def test_a_hub_does_not_hide_the_line_that_it_is_tied_to() -> None:
    tied = line(3000).tolil()
    tied[0, ::3] = tied[::3, 0] = -0.1
    tied[0, 0] = 500
    features = matrix_features(sparse.csr_array(tied))
    assert features["log_hubs"] == pytest.approx(np.log(2))
    assert features["fill_growth"] == pytest.approx(0, abs=0.25)
    assert features["depth_exponent"] > 0.9
    assert without_hubs(sparse.csr_array(tied)).shape == (2999, 2999)
