"""Measurement of solves: what ends them, and that a matrix can be made again."""

from time import thread_time

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("pyamg")

from benchmarks.tuning_solvers.grids import Matrix
from benchmarks.tuning_solvers.kinds import KINDS, matrix_of
from benchmarks.tuning_solvers.measure import applicable, right_side
from benchmarks.tuning_solvers.meshes import Mesh
from benchmarks.tuning_solvers.stopwatch import Limits, Outcome, timed
from benchmarks.tuning_solvers.variants import VARIANTS, Vector, solver_of

QUICK = sparse.csr_array(sparse.diags_array([-1.0, 2.1, -1.0], offsets=[-1, 0, 1], shape=(200, 200)))


def measured(solve: object, limit_seconds: float = 5.0) -> Outcome:
    return timed(solve, QUICK, right_side(QUICK, 0), Limits(limit_seconds, 0.0))  # type: ignore[arg-type]


def endless(_matrix: object, right: Vector) -> Vector:
    while thread_time() >= 0:
        pass
    return right


def broken(_matrix: object, right: Vector) -> Vector:
    raise ValueError(f"{right[0]}")


def test_a_solve_has_its_seconds() -> None:
    outcome = measured(solver_of(("direct", "mmd")))
    assert outcome.reason == ""
    assert outcome.seconds is not None
    assert outcome.seconds > 0


def test_the_kernel_ends_what_never_returns() -> None:
    assert measured(endless, limit_seconds=0.05) == Outcome(None, "limit")


def test_an_error_and_a_wrong_answer_are_no_solution() -> None:
    assert measured(broken) == Outcome(None, "ValueError")
    assert measured(lambda _matrix, right: right) == Outcome(None, "residual")


@pytest.mark.parametrize("variant", VARIANTS, ids=" ".join)
def test_every_variant_solves_an_easy_system(variant: tuple[str, str]) -> None:
    assert measured(solver_of(variant)).reason == ""


def test_a_kind_and_a_seed_make_the_same_matrix_again() -> None:
    first, again = matrix_of("resistors", 3), matrix_of("resistors", 3)
    assert np.array_equal(first.data, again.data)
    assert np.array_equal(first.indices, again.indices)
    assert matrix_of("resistors", 4).nnz != first.nnz
    assert len(KINDS) >= 35


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_makes_matrices_that_some_variant_can_solve(kind: str) -> None:
    matrix = small(kind, seed=1)
    assert matrix.shape[0] == matrix.shape[1]
    assert (np.diff(matrix.indptr) > 0).all()
    assert np.isfinite(matrix.data).all()
    right = right_side(matrix, 0)
    solution = solver_of(("direct", "colamd"))(matrix, right)
    assert np.linalg.norm(right - matrix @ solution) <= 1e-6 * np.linalg.norm(right)


def test_meshes_carry_what_their_equations_say() -> None:
    """Away from the rim, constants have no gradient, and mass sums to the area."""
    mesh = Mesh.random(np.random.default_rng(0), 2000, 2)
    inside = np.abs(mesh.stiffness().sum(axis=1)) < 1e-9
    assert inside.mean() > 0.8
    assert mesh.mass().sum() == pytest.approx(1, abs=0.15)  # the rim's points are left out
    assert (mesh.mass().diagonal() > 0).all()


def test_saddle_points_are_indefinite_and_waves_symmetric() -> None:
    for kind in ("optimality", "stokes"):
        diagonal = small(kind, seed=0).diagonal()
        assert diagonal.min() < 0 < diagonal.max()
    waves = small("mesh_waves", seed=0)
    assert abs(waves - waves.T).max() <= 1e-12 * abs(waves).max()


def test_composed_matrices_are_of_many_sorts() -> None:
    """Symmetric and not, definite and not, with hubs and without: forty show each of them."""
    matrices = [KINDS["composed"][0](np.random.default_rng(seed), 600) for seed in range(40)]
    symmetric = [abs(matrix - matrix.T).max() <= 1e-12 * abs(matrix).max() for matrix in matrices]
    assert 10 < sum(symmetric) < 35
    assert 3 < sum(matrix.diagonal().min() < 0 for matrix in matrices) < 20
    longest = [np.diff(matrix.indptr).max() / np.median(np.diff(matrix.indptr)) for matrix in matrices]
    assert min(longest) < 1.5
    assert max(longest) > 10


def small(kind: str, seed: int) -> Matrix:
    return KINDS[kind][0](np.random.default_rng(seed), 600)


def test_methods_for_symmetric_matrices_are_not_tried_on_others() -> None:
    assert applicable(QUICK) == list(VARIANTS)
    assert not {"cg", "minres"} & {solver for solver, _ in applicable(sparse.csr_array(sparse.triu(QUICK)))}
