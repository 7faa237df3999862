"""Matrices composed at random of a graph, weights, a diagonal and quirks: each is nearly a kind of its own.

They are there to learn from, since few named kinds say little of a kind unlike them. Nothing is scored on them.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial import KDTree

from benchmarks.tuning_solvers.grids import Matrix

Random: TypeAlias = np.random.Generator
Ends: TypeAlias = npt.NDArray[np.int64]  # (2, edges)


def composed(random: Random, rows: int) -> Matrix:
    """A weighted graph with a diagonal, then some of: coupled unknowns, one-way flow, hubs, scaling, constraints."""
    fields = int(random.choice([1, 1, 1, 1, 2, 3]))
    ends = _graph(random, max(rows // fields, 100))
    matrix = _with_diagonal(random, _couplings(random, ends))
    if fields > 1:
        matrix = _coupled(random, matrix, fields)
    for change, chance in CHANGES:
        if random.random() < chance:
            matrix = change(random, matrix)
    return sparse.csr_array(matrix)


def _graph(random: Random, rows: int) -> Ends:
    return GRAPHS[int(random.integers(len(GRAPHS)))](random, rows)


def _lattice(random: Random, rows: int) -> Ends:
    """A box of one to three dimensions, sometimes closed to a ring, sometimes with diagonals or next neighbours."""
    dimensions = int(random.choice([1, 2, 2, 3, 3]))
    sides = np.exp(random.uniform(0, 1.2, dimensions))
    shape = np.maximum((sides * (rows / sides.prod()) ** (1 / dimensions)).astype(int), 2)
    number = np.arange(shape.prod()).reshape(shape)
    steps = list(np.eye(dimensions, dtype=int))
    if random.random() < 0.4:
        steps += [2 * step for step in steps]
    if dimensions > 1 and random.random() < 0.4:
        steps += [steps[0] + steps[1], steps[0] - steps[1]]
    closed = random.random() < 0.3
    return np.hstack([_moved(number, step, closed) for step in steps])


def _moved(number: npt.NDArray[np.int64], step: npt.NDArray[np.int64], closed: bool) -> Ends:
    to = np.roll(number, tuple(-step), axis=tuple(range(number.ndim)))
    place = np.indices(number.shape) + step.reshape(-1, *[1] * number.ndim)
    inside = np.all((place >= 0) & (place < np.array(number.shape).reshape(-1, *[1] * number.ndim)), axis=0)
    kept = np.ones_like(inside) if closed else inside
    return np.vstack([number[kept], to[kept]])


def _near(random: Random, rows: int) -> Ends:
    """Random points of a square or cube, each joined to the nearest ones."""
    points = random.random((rows, int(random.integers(2, 4))))
    points = points[np.lexsort(np.floor(8 * points).T)]
    count = int(random.integers(3, 9))
    _, nearest = KDTree(points).query(points, count + 1)
    return np.vstack([np.repeat(np.arange(rows), count), nearest[:, 1:].ravel()])


def _anywhere(random: Random, rows: int) -> Ends:
    return random.integers(0, rows, (2, int(rows * random.uniform(1.5, 6))))


def _in_a_band(random: Random, rows: int) -> Ends:
    from_ = random.integers(0, rows, int(rows * random.uniform(1.5, 8)))
    width = rows ** random.uniform(0.2, 0.8)
    return np.vstack([from_, np.clip(from_ + random.normal(0, width, len(from_)).astype(int), 0, rows - 1)])


def _tree(random: Random, rows: int) -> Ends:
    """A random tree, its new leaves near the last ones or anywhere, with a few cycles."""
    child = np.arange(1, rows)
    parent = (child * random.random(rows - 1) ** random.uniform(0.05, 1)).astype(int)
    cycles = random.integers(0, rows, (2, int(rows * random.uniform(0, 0.3))))
    return np.hstack([np.vstack([parent, child]), cycles])


def _popular(random: Random, rows: int) -> Ends:
    """Edges of which one end is more often a vertex of low number, by a power."""
    count = int(rows * random.uniform(1.5, 5))
    favoured = (rows * random.random(count) ** random.uniform(1.2, 2.5)).astype(int)
    return np.vstack([random.integers(0, rows, count), favoured])


GRAPHS: tuple[Callable[[Random, int], Ends], ...] = (
    _lattice,
    _lattice,
    _lattice,
    _near,
    _near,
    _anywhere,
    _in_a_band,
    _tree,
    _popular,
)


def _couplings(random: Random, ends: Ends) -> Matrix:
    """Symmetric off-diagonal entries: of one size, log-normal, by direction, or by region; some with the other sign."""
    from_, to = ends[:, ends[0] != ends[1]]
    rows, spread = int(ends.max()) + 1, float(random.uniform(0.3, 3))
    kinds = (
        np.ones(len(from_)),
        np.exp(random.normal(0, spread, len(from_))),
        10 ** (-spread * (np.abs(to - from_) > np.median(np.abs(to - from_)))),
        np.exp(spread * random.normal(0, 1, 1 + rows // 64)[np.maximum(from_, to) // 64]),
    )
    weight = kinds[int(random.integers(len(kinds)))]
    if random.random() < 0.25:
        weight = weight * np.where(random.random(len(weight)) < random.uniform(0, 0.6), -1, 1)
    half = sparse.coo_array((weight, (from_, to)), shape=(rows, rows)).tocsr()
    return sparse.csr_array(-(half + half.T))


def _with_diagonal(random: Random, couplings: Matrix) -> Matrix:
    """Row sums times about one, and a shift: near singular, dominant, a step in time, or indefinite."""
    sums = np.asarray(abs(couplings).sum(axis=1)).ravel()
    shift = 10 ** random.uniform(-6, 0.3) * sums.mean()
    if random.random() < 0.15:
        shift = -(10 ** random.uniform(-3, -0.2)) * sums.mean()
    share = random.uniform(0.6, 1.1) if random.random() < 0.2 else 1.0
    mass = np.exp(random.normal(0, random.uniform(0, 2), len(sums))) if random.random() < 0.3 else 1.0
    return sparse.csr_array(couplings + sparse.diags_array(share * sums + shift * mass + 1e-9 * sums.mean()))


def _coupled(random: Random, matrix: Matrix, fields: int) -> Matrix:
    """Several unknowns a vertex: each spreads by itself, and they act on one another, symmetrically or not."""
    own = random.normal(size=(fields, fields))
    mixed = own @ own.T / fields if random.random() < 0.6 else own + 1.5 * np.eye(fields)
    speeds = np.diag(10 ** random.uniform(-1, 1, fields))
    strength = 10 ** random.uniform(-3, 0) * abs(matrix.diagonal()).mean()
    return sparse.csr_array(
        sparse.kron(matrix, speeds) + strength * sparse.kron(sparse.eye_array(matrix.shape[0]), mixed)
    )


def _flowing(random: Random, matrix: Matrix) -> Matrix:
    """Entries against a flow grow and those along it shrink; some vanish."""
    entries = sparse.coo_array(matrix)
    line, column = entries.coords
    level = random.random(matrix.shape[0]) if random.random() < 0.5 else np.arange(matrix.shape[0])
    along = np.sign(level[line] - level[column])
    strength = min(10 ** random.uniform(-2, 0.3), 1.0) * random.choice([1.0, random.random()])
    data = entries.data * (1 + strength * along)
    kept = (along == 0) | (random.random(len(data)) >= random.choice([0.0, random.random()]))
    return sparse.coo_array((data[kept], (line[kept], column[kept])), shape=matrix.shape).tocsr()


def _with_hubs(random: Random, matrix: Matrix) -> Matrix:
    """A few vertices joined to many: both ways, or as rows alone."""
    rows = matrix.shape[0]
    hubs = random.choice(rows, int(random.integers(1, 6)), replace=False)
    reach = int(rows * 10 ** random.uniform(-2, -0.4))
    line, column = np.repeat(hubs, reach), random.integers(0, rows, len(hubs) * reach)
    weight = random.normal(0, 0.2, len(line)) * abs(matrix.diagonal()).mean()
    extra = sparse.coo_array((weight, (line, column)), shape=matrix.shape).tocsr()
    if random.random() < 0.3:
        return sparse.csr_array(matrix + extra)
    both = extra + extra.T
    return sparse.csr_array(matrix + both + sparse.diags_array(np.asarray(abs(both).sum(axis=1)).ravel()))


def _scaled(random: Random, matrix: Matrix) -> Matrix:
    """Rows and columns alike in other units; sometimes rows alone."""
    scale = sparse.diags_array(10 ** random.normal(0, random.uniform(0.2, 1.5), matrix.shape[0]))
    return sparse.csr_array(scale @ matrix if random.random() < 0.2 else scale @ matrix @ scale)


def _constrained(random: Random, matrix: Matrix) -> Matrix:
    """Rules with a few entries each, near each other or not, and a small negative corner."""
    rows = matrix.shape[0]
    rules, entries = max(int(rows * random.uniform(0.03, 0.5)), 1), int(random.integers(1, 6))
    first = np.repeat(random.integers(0, rows, rules), entries)
    reach = rows if random.random() < 0.5 else 20
    columns = (first + random.integers(0, reach, len(first))) % rows
    places = (np.repeat(np.arange(rules), entries), columns)
    size = abs(matrix.diagonal()).mean() ** random.choice([0.0, 0.5])
    rule = sparse.coo_array((size * random.normal(size=len(columns)), places), shape=(rules, rows)).tocsr()
    corner = -(10 ** random.uniform(-8, 0)) * sparse.eye_array(rules)
    return sparse.csr_array(sparse.block_array([[matrix, rule.T], [rule, corner]]))


def _renumbered(random: Random, matrix: Matrix) -> Matrix:
    order = random.permutation(matrix.shape[0])
    return sparse.csr_array(matrix[order][:, order])


CHANGES: tuple[tuple[Callable[[Random, Matrix], Matrix], float], ...] = (
    (_flowing, 0.35),
    (_with_hubs, 0.12),
    (_constrained, 0.12),
    (_scaled, 0.2),
    (_renumbered, 0.3),
)
