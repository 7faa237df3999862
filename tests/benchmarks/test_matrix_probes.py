"""Probes of matrices whose costs are known from theory."""

import numpy as np
import pytest
from benchmarks.tuning_solvers.matrix_features import further_features, matrix_features
from benchmarks.tuning_solvers.matrix_probes import FEW, MANY
from scipy import sparse


def line(rows: int) -> sparse.csr_array:
    return sparse.csr_array(sparse.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(rows, rows)))


def grid(across: int, dimensions: int) -> sparse.csr_array:
    one, total = sparse.eye_array(across), line(across)
    for _ in range(dimensions - 1):
        total = sparse.kron(total, one) + sparse.kron(sparse.eye_array(total.shape[0]), line(across))
    return sparse.csr_array(total)


def all_features(matrix: sparse.csr_array) -> dict[str, float]:
    return further_features(matrix, matrix_features(matrix))


def test_levels_tell_a_line_a_surface_and_a_body_apart() -> None:
    features = [matrix_features(matrix) for matrix in (line(4096), grid(64, 2), grid(16, 3))]
    assert [one["depth_exponent"] for one in features] == pytest.approx([1, 0.58, 0.47], abs=0.05)
    work = [one["log_level_work"] for one in features]
    assert work[0] + 3 < work[1] < work[2] - 1


def test_a_better_conditioned_matrix_needs_fewer_products() -> None:
    hard = all_features(grid(40, 2))
    easy = all_features(sparse.csr_array(grid(40, 2) + 10 * sparse.eye_array(1600)))
    for name in ("log_products", "log_products_jacobi", "log_products_plain"):
        assert easy[name] < np.log(25) < hard[name]
    assert easy["log_direct_to_jacobi"] > hard["log_direct_to_jacobi"] + 1


def test_a_matrix_badly_scaled_by_rows_is_easy_with_division_by_the_diagonal() -> None:
    scale = sparse.diags_array(10.0 ** np.linspace(-3, 3, 900))
    features = all_features(sparse.csr_array(scale @ (grid(30, 2) + 4 * sparse.eye_array(900)) @ scale))
    assert features["log_products_jacobi"] < features["log_products_plain"] - 1


def test_products_are_counted_alike_where_the_matrix_is_not_symmetric() -> None:
    skew = sparse.csr_array(grid(30, 2) + sparse.diags_array([0.3, -0.3], offsets=[-1, 1], shape=(900, 900)))
    straight = all_features(grid(30, 2))
    assert all_features(skew)["log_products_jacobi"] == pytest.approx(straight["log_products_jacobi"], abs=1.5)


def test_a_probe_is_longer_only_where_the_solve_is_long() -> None:
    easy = all_features(sparse.csr_array(grid(40, 2) + 10 * sparse.eye_array(1600)))
    assert easy["log_products_probed"] <= np.log(FEW)
    laplacian = grid(20, 3) - 0.3 * sparse.eye_array(8000)
    hard = all_features(sparse.csr_array(laplacian @ laplacian))
    assert np.log(FEW) < hard["log_products_probed"] <= np.log(MANY)


def test_a_hub_does_not_hide_the_line_that_it_is_tied_to() -> None:
    tied = line(3000).tolil()
    tied[0, ::3] = tied[::3, 0] = -0.1
    tied[0, 0] = 500
    features = matrix_features(sparse.csr_array(tied))
    assert features["log_hubs"] == pytest.approx(np.log(2))
    assert features["depth_exponent"] > 0.9


def test_a_search_that_reaches_little_begins_elsewhere() -> None:
    apart = sparse.csr_array(sparse.block_diag([np.eye(1), grid(30, 2)]))
    assert matrix_features(apart)["reached_ratio"] > 0.99
