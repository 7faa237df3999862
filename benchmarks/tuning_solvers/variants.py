"""The ways to solve that are compared: a Krylov method with a preconditioner, or a factorisation."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyamg
from scipy import sparse
from scipy.sparse import linalg

from benchmarks.tuning_solvers.grids import Matrix

Vector: TypeAlias = npt.NDArray[np.float64]
Operator: TypeAlias = linalg.LinearOperator | None
TOLERANCE = 1e-8
REFINEMENTS = 10
ITERATIONS = 100_000  # the time limit ends it sooner


def factorise(ordering: str) -> Callable[[Matrix, Vector], Vector]:
    """SuperLU with one of its column orderings."""

    def solve(matrix: Matrix, right: Vector) -> Vector:
        return np.asarray(linalg.splu(sparse.csc_array(matrix), permc_spec=ordering).solve(right))

    return solve


def iterate(method: str, precondition: Callable[[Matrix], Operator]) -> Callable[[Matrix, Vector], Vector]:
    """One of SciPy's Krylov methods, to TOLERANCE, with a preconditioner."""

    def solve(matrix: Matrix, right: Vector) -> Vector:
        call, more = METHODS[method]
        return np.asarray(call(matrix, right, rtol=TOLERANCE, maxiter=ITERATIONS, M=precondition(matrix), **more)[0])

    return solve


def nothing(_matrix: Matrix) -> Operator:
    """No preconditioner."""
    return None


def jacobi(matrix: Matrix) -> Operator:
    """Division by the diagonal's magnitude."""
    diagonal = np.abs(matrix.diagonal())
    inverse = 1 / np.where(diagonal > 0, diagonal, 1)
    return linalg.LinearOperator(matrix.shape, matvec=lambda vector: inverse * np.ravel(vector))


def incomplete(drop: float, fill: float) -> Callable[[Matrix], Operator]:
    """SuperLU's incomplete factors with this drop tolerance and at most this fill."""

    def precondition(matrix: Matrix) -> Operator:
        factors = linalg.spilu(sparse.csc_array(matrix), drop_tol=drop, fill_factor=fill)
        return linalg.LinearOperator(matrix.shape, matvec=factors.solve)

    return precondition


def ruge_stuben(matrix: Matrix) -> Operator:
    """One V-cycle of classical algebraic multigrid."""
    return pyamg.ruge_stuben_solver(sparse.csr_matrix(matrix)).aspreconditioner()


def smoothed_aggregation(matrix: Matrix) -> Operator:
    """One V-cycle of multigrid by smoothed aggregation."""
    return pyamg.smoothed_aggregation_solver(sparse.csr_matrix(matrix)).aspreconditioner()


def minres(matrix: Matrix, right: Vector, rtol: float, **more: object) -> tuple[Vector, int]:
    """SciPy's minres stops by a norm that includes the matrix': it goes on from there until the residual is small."""
    solution, goal = np.zeros_like(right), rtol * np.linalg.norm(right)
    for _ in range(REFINEMENTS):
        left = right - matrix @ solution
        if np.linalg.norm(left) <= goal:
            break
        solution = solution + linalg.minres(matrix, left, rtol=rtol, **more)[0]
    return solution, 0


METHODS: Mapping[str, tuple[Callable[..., tuple[Vector, int]], Mapping[str, int]]] = {
    "cg": (linalg.cg, {}),
    "minres": (minres, {}),
    "bicgstab": (linalg.bicgstab, {}),
    "gmres": (linalg.gmres, {"restart": 30}),
    "lgmres": (linalg.lgmres, {}),
}
PRECONDITIONERS: Mapping[str, Callable[[Matrix], Operator]] = {
    "none": nothing,
    "jacobi": jacobi,
    "ilu_loose": incomplete(1e-2, 3),
    "ilu_tight": incomplete(1e-4, 10),
    "amg_classical": ruge_stuben,
    "amg_aggregation": smoothed_aggregation,
}
# (solver, preconditioner), the ones that are often quick first: they set the limit of the others.
VARIANTS: tuple[tuple[str, str], ...] = (
    ("cg", "jacobi"),
    ("direct", "mmd"),
    ("bicgstab", "jacobi"),
    ("cg", "amg_aggregation"),
    ("gmres", "ilu_tight"),
    ("direct", "colamd"),
    ("cg", "none"),
    ("cg", "amg_classical"),
    ("bicgstab", "none"),
    ("bicgstab", "ilu_loose"),
    ("bicgstab", "ilu_tight"),
    ("lgmres", "ilu_loose"),
    ("bicgstab", "amg_classical"),
    ("gmres", "jacobi"),
    ("gmres", "amg_classical"),
    ("gmres", "amg_aggregation"),
    ("minres", "jacobi"),
)
FOR_SYMMETRIC = ("cg", "minres")
ORDERINGS = {"mmd": "MMD_AT_PLUS_A", "colamd": "COLAMD"}


def solver_of(variant: tuple[str, str]) -> Callable[[Matrix, Vector], Vector]:
    """The function that sets up and solves."""
    method, precondition = variant
    if method == "direct":
        return factorise(ORDERINGS[precondition])
    return iterate(method, PRECONDITIONERS[precondition])
