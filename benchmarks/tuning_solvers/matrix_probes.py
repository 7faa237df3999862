"""Features of solvers' costs after a little work on a sparse matrix: some iterations, a coarse matrix factorised."""

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph, linalg

from crosswind.data.schema.prediction import Floats

Matrix: TypeAlias = sparse.csr_array
Vector: TypeAlias = Floats
TINY = 1e-300
STEPS = 20  # of GMRES
PRODUCTS = (10, 30)  # of matrix and vector, after which residuals are looked at
CELLS = (128, 512)  # rows of the coarse matrices that are factorised
LEAST_RESIDUAL = 1e-12
LEAST_FALL = 0.05  # of a residual's logarithm: below it, nothing is known but that it stands still
HUB = 10  # times as many entries as the median row


def probe_features(rows: Matrix, is_symmetric: bool) -> dict[str, float]:
    """Return what iterations and a factorisation should cost, and their ratio, on which the choice between them turns.

    `log_direct_to_plain`, `_jacobi` are logarithms of the multiplications of a factorisation over those of iterations.
    """
    iterations, fill = _krylov(rows, is_symmetric), _fill(rows)
    ratios = {
        f"log_direct_to_{name}": fill["log_fill_work"] - iterations[f"log_products_{name}"] - float(np.log(rows.nnz))
        for name in ("plain", "jacobi")
    }
    return {**iterations, **fill, **ratios}


def _krylov(rows: Matrix, is_symmetric: bool) -> dict[str, float]:
    """Return what a few iterations from a random right side show.

    `log_products_NAME` is the logarithm of the products of matrix and vector to a residual of 1e-8 if it went on
    falling as it did in the first PRODUCTS of CG (BiCGSTAB where not symmetric), without a preconditioner and with
    division by the diagonal; `_late` tells it from the latter part of them. `log_products_gmres` comes from GMRES on
    the matrix divided by its diagonal. A Ritz value left of zero says that the matrix is not definite; a wide spread,
    that it is ill-conditioned. Source: Saad, Iterative methods for sparse linear systems, 2003, algorithms 6.9, 6.18
    and 7.7.
    """
    diagonal = rows.diagonal()
    right = np.random.default_rng(0).normal(size=len(diagonal))
    small = _arnoldi(rows, 1 / np.where(diagonal == 0, 1.0, diagonal), right)
    ritz = np.linalg.eigvals(small[:-1])
    iterate = _conjugate_gradients if is_symmetric else _bicgstab
    jacobi = 1 / np.where(diagonal == 0, 1.0, np.abs(diagonal))
    return {
        "log_residual_5": _log_residual(small, min(5, small.shape[1])),
        "log_products_gmres": _log_products(_log_residual(small, small.shape[1]), STEPS),
        "ritz_real_min": float(np.clip(ritz.real.min(), -10, 10)),
        "log_ritz_spread": float(np.log(max(abs(ritz).max(), TINY) / max(abs(ritz).min(), 1e-12))),
        "ritz_imaginary_max": float(np.clip(abs(ritz.imag).max(), 0, 10)),
        **_needed("plain", iterate(rows, right, np.ones(len(right)))),
        **_needed("jacobi", iterate(rows, right, jacobi)),
    }


def _fill(rows: Matrix) -> dict[str, float]:
    """Return how a factorisation of the matrix' graph fills up, judged by two coarse graphs.

    `log_fill_work` is the logarithm of the expected multiplications; `fill_growth` how fast a row's share of them grows
    with the rows: about 0 for a line, 1/2 for a surface, 4/3 for a body, 2 where everything is near everything
    (Lipton, Rose and Tarjan 1979, "Generalized nested dissection").
    """
    graph = without_hubs(rows)
    few, many = (_work_per_row(_coarse(graph, cells)) for cells in CELLS)
    growth = np.log(many / few) / np.log(CELLS[1] / CELLS[0])
    log_count = np.log(graph.shape[0])
    whole = np.log(many) + growth * max(log_count - np.log(CELLS[1]), 0.0) + log_count
    return {"log_coarse_fill_work": float(np.log(many)), "fill_growth": float(growth), "log_fill_work": float(whole)}


def without_hubs(rows: Matrix) -> Matrix:
    """The pattern, in ones, but for rows and columns HUB times as long as the median: an ordering puts them last.

    Left in, they would make everything near to everything else, and every cell a piece of the whole.
    """
    graph = sparse.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
    length = np.diff(rows.indptr) + np.bincount(rows.indices, minlength=rows.shape[0])
    kept = np.flatnonzero(length <= HUB * np.median(length))
    return graph if len(kept) == rows.shape[0] else sparse.csr_array(graph[kept][:, kept])


def _coarse(graph: Matrix, cells: int) -> Matrix:
    """The graph of the cells around random vertices, each vertex in the cell that it reaches in the fewest steps."""
    count = graph.shape[0]
    if count <= cells:
        return graph
    roots = np.random.default_rng(0).choice(count, cells, replace=False)
    _, _, nearest = csgraph.dijkstra(
        graph, directed=False, indices=roots, min_only=True, unweighted=True, return_predecessors=True
    )
    number = np.zeros(count, dtype=np.int32)
    number[roots] = np.arange(cells)
    cell = number[np.where(nearest < 0, roots[0], nearest)]  # what no root reaches belongs to the first
    line = np.repeat(cell, np.diff(graph.indptr))
    return sparse.coo_array((np.ones(graph.nnz), (line, cell[graph.indices])), shape=(cells, cells)).tocsr()


def _work_per_row(graph: Matrix) -> float:
    """Multiplications to factorise the graph's Laplacian, a row's share, as minimum degree orders it."""
    both = graph + graph.T
    laplacian = sparse.diags_array(np.asarray(both.sum(axis=1)).ravel() + 1) - both
    laplacian = sparse.csc_array(laplacian)
    laplacian.indices, laplacian.indptr = laplacian.indices.astype(np.int32), laplacian.indptr.astype(np.int32)
    factors = linalg.splu(laplacian, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return float((np.diff(factors.L.indptr).astype(float) ** 2).mean())


def _needed(name: str, residuals: Iterator[tuple[int, float]]) -> dict[str, float]:
    """From (products, norm over the first one): the least within each of PRODUCTS tells how fast it falls."""
    with np.errstate(all="ignore"):
        finite = [(0, 1.0), *((count, norm) for count, norm in residuals if np.isfinite(norm))]
    few, many = PRODUCTS
    early, late = (
        float(np.log(max(min(norm for count, norm in finite if count <= most), LEAST_RESIDUAL))) for most in PRODUCTS
    )
    return {
        f"log_products_{name}": _log_products(late, many),
        f"log_products_{name}_late": _log_products(late - early, many - few),
    }


def _log_products(log_residual: float, products: int) -> float:
    """The logarithm of the products to a residual of 1e-8, from its logarithm after so many of them."""
    return float(np.log(products * np.log(1e8) / max(-log_residual, LEAST_FALL)))


def _conjugate_gradients(rows: Matrix, right: Vector, inverse: Vector) -> Iterator[tuple[int, float]]:
    left, first = right.copy(), np.linalg.norm(right)
    scaled = inverse * left
    along, before = scaled, left @ scaled
    for count in range(1, PRODUCTS[-1] + 1):
        image = rows @ along
        left = left - before / (along @ image) * image
        yield count, float(np.linalg.norm(left) / first)
        scaled = inverse * left
        now = left @ scaled
        along, before = scaled + now / before * along, now


def _bicgstab(rows: Matrix, right: Vector, inverse: Vector) -> Iterator[tuple[int, float]]:
    left, along, shadow, first = right.copy(), right.copy(), right, np.linalg.norm(right)
    before = shadow @ left
    for count in range(2, PRODUCTS[-1] + 1, 2):
        image = rows @ (inverse * along)
        step = before / (shadow @ image)
        half = left - step * image
        turned = rows @ (inverse * half)
        weight = (turned @ half) / (turned @ turned)
        left = half - weight * turned
        yield count, float(np.linalg.norm(left) / first)
        now = shadow @ left
        along = left + now / before * step / weight * (along - weight * image)
        before = now


def _arnoldi(rows: Matrix, inverse: Vector, start: Vector) -> Floats:
    """The Hessenberg matrix of at most STEPS steps, shape (steps + 1, steps)."""
    basis = np.zeros((STEPS + 1, len(inverse)))
    small = np.zeros((STEPS + 1, STEPS))
    basis[0] = start / np.linalg.norm(start)
    for step in range(STEPS):
        vector = inverse * (rows @ basis[step])
        share = basis[: step + 1] @ vector
        vector = vector - share @ basis[: step + 1]
        length = float(np.linalg.norm(vector))
        small[: step + 1, step], small[step + 1, step] = share, length
        if length < 1e-12 * max(float(np.abs(share).max()), TINY):
            return small[: step + 2, : step + 1]
        basis[step + 1] = vector / length
    return small


def _log_residual(small: Floats, steps: int) -> float:
    """GMRES' relative residual after so many steps."""
    first = np.zeros(steps + 1)
    first[0] = 1
    least = small[: steps + 1, :steps]
    left = first - least @ np.linalg.lstsq(least, first, rcond=None)[0]
    return float(np.log(max(float(np.linalg.norm(left)), LEAST_RESIDUAL)))
