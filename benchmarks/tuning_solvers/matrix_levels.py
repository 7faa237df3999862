"""Features of a sparse matrix' graph from one breadth-first search: how a factorisation fills up."""

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from benchmarks.tuning_solvers.matrix_rows import Integers, Matrix
from crosswind.data.schema.prediction import Floats

STARTS = 3  # vertices from which a search may begin, until one reaches most others
LEVELS = 48  # that are counted; the rest are like them


def level_features(graph: Matrix) -> dict[str, float]:
    """Return the depth and the width of the levels of a search through a graph.

    A level separates the vertices before it from those behind it, as a separator does in nested dissection: the work
    of a factorisation follows from how wide levels are. The depth's exponent is about 1 for a line, 1/2 for a surface,
    1/3 for a body, and 0 for a network. Sources: Lipton, Rose and Tarjan 1979, "Generalized nested dissection".
    """
    order, before = _searched(graph)
    widths = _widths(order, before)
    count, reached = graph.shape[0], len(order)
    depth = max(len(widths) * reached / float(widths.sum()), 1.0)
    work = float(np.power(widths, 3).sum() / widths.sum()) * count
    return {
        "reached_ratio": reached / count,
        "depth_exponent": float(np.log1p(depth) / np.log1p(reached)),
        "log_level_max": float(np.log(widths.max())),
        "log_level_middle": float(np.log(widths[np.searchsorted(widths.cumsum(), widths.sum() / 2)])),
        "log_level_work": float(np.log1p(work)),
    }


def without_hubs(rows: Matrix, lengths: Integers, longest: float) -> Matrix:
    """The matrix but for rows and columns of more than so many entries: an ordering puts them last.

    Left in, they would make everything near to everything else.
    """
    if lengths.max() <= longest:
        return rows
    kept = np.flatnonzero(lengths <= longest)
    return sparse.csr_array(rows[kept][:, kept])


def _searched(graph: Matrix) -> tuple[Integers, Integers]:
    """The order of a search from the first vertex, or from another where that one reaches less than half."""
    best: tuple[Integers, Integers] | None = None
    for start in np.linspace(0, graph.shape[0] - 1, STARTS).astype(int):
        order, before = csgraph.breadth_first_order(graph, start, directed=True)
        if best is None or len(order) > len(best[0]):
            best = order, before
        if 2 * len(order) > graph.shape[0]:
            break
    assert best is not None
    return best


def _widths(order: Integers, before: Integers) -> Floats:
    """The number of vertices in each of the first LEVELS levels."""
    place = np.empty(len(before), dtype=np.int64)
    place[order] = np.arange(len(order))
    parents = place[before[order[1:]]]  # never falls: a level's vertices come in the order of their parents
    ends = [0, 1]
    while ends[-1] < len(order) and len(ends) <= LEVELS:
        ends.append(1 + int(parents.searchsorted(ends[-1])))
    return np.diff(ends).astype(np.float64)
