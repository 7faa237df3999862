"""Matrices of networks, chains, random couplings and constraints, made from a random generator and a size."""

import numpy as np
from pyamg.gallery import poisson
from scipy import sparse
from scipy.spatial import cKDTree

from benchmarks.tuning_solvers.grids import Matrix, laplacian_of


def geometric_laplacian(random: np.random.Generator, rows: int) -> Matrix:
    """Points in the plane or in space, joined to their nearest ones; some are grounded."""
    points = random.random((rows, int(random.integers(2, 4))))
    near = cKDTree(points).query(points, k=int(random.integers(5, 9)))[1][:, 1:]
    from_ = np.repeat(np.arange(rows), near.shape[1])
    return _shuffled(random, laplacian_of(from_, near.ravel(), np.ones(len(from_)), _grounded(random, rows)))


def scale_free_laplacian(random: np.random.Generator, rows: int) -> Matrix:
    """A network with few vertices of very many edges."""
    edges = 3 * rows
    popular = (rows * random.random(edges) ** random.uniform(1.5, 3)).astype(np.int64)
    from_ = random.integers(0, rows, edges)
    kept = from_ != popular
    weight = np.exp(random.normal(0, 0.5, int(kept.sum())))
    return laplacian_of(from_[kept], popular[kept], weight, 10 ** random.uniform(-3, 0) * np.ones(rows))


def resistors(random: np.random.Generator, rows: int) -> Matrix:
    """A power grid's conductances over several magnitudes, with supply rails that many nodes share."""
    return _shuffled(random, _circuit(random, rows))


def amplifiers(random: np.random.Generator, rows: int) -> Matrix:
    """The same with voltage-controlled sources: not symmetric."""
    base = _circuit(random, rows)
    rows = base.shape[0]
    count = rows // 10
    gain = np.exp(random.normal(-1, 1, count)) * base.diagonal()[:count].mean()
    places = (random.integers(0, rows, count), random.integers(0, rows, count))
    sources = sparse.coo_array((gain, places), shape=base.shape).tocsr()
    return _shuffled(random, sparse.csr_array(base + sources))


def dominant(random: np.random.Generator, rows: int) -> Matrix:
    """Random couplings of both signs, each diagonal above the sum of its row."""
    return _random(random, rows, above=float(random.uniform(1.01, 2)))


def weakly_dominant(random: np.random.Generator, rows: int) -> Matrix:
    """Random couplings near a diagonal that is below the sum of its row."""
    return _random(random, rows, above=float(random.uniform(0.4, 0.9)))


def dominant_symmetric(random: np.random.Generator, rows: int) -> Matrix:
    """Random symmetric couplings of both signs, positive definite."""
    matrix = _random(random, rows, above=float(random.uniform(1.001, 1.5)))
    half = (matrix + matrix.T) / 2
    off = half - sparse.diags_array(half.diagonal())
    total = np.asarray(abs(off).sum(axis=1)).ravel()
    return sparse.csr_array(off + sparse.diags_array(float(random.uniform(1.001, 1.2)) * total + 1e-6))


def banded(random: np.random.Generator, rows: int) -> Matrix:
    """A positive definite band of random width, scaled by rows over several magnitudes."""
    width = int(random.integers(2, 30))
    factor = sparse.diags_array(
        [random.normal(size=rows - k) * 0.7**k for k in range(1, width)] + [1 + random.random(rows)],
        offsets=[*(-k for k in range(1, width)), 0],
    )
    scale = sparse.diags_array(10 ** random.uniform(-1.5, 1.5, rows))
    return sparse.csr_array(scale @ factor @ factor.T @ scale)


def ranking(random: np.random.Generator, rows: int) -> Matrix:
    """Identity minus a damped random walk, as in page rank and Markov chains with costs."""
    links = int(random.integers(4, 12))
    to = (rows * random.random((rows, links)) ** 1.5).astype(np.int64)
    walk = sparse.coo_array((np.full(to.size, 1 / links), (to.ravel(), np.repeat(np.arange(rows), links))))
    damping = 1 - 10 ** random.uniform(-3, -0.5)
    return sparse.csr_array(sparse.eye_array(rows) - damping * sparse.csr_array(walk.tocsr(), shape=(rows, rows)))


def queues(random: np.random.Generator, rows: int) -> Matrix:
    """A birth-death process on two queues: transport of probability, not symmetric, almost singular."""
    across = int(np.sqrt(rows))
    rates = random.uniform(0.2, 2, 4)
    shape = (across, across)
    up = sparse.diags_array([1.0], offsets=[-1], shape=shape)
    down = sparse.diags_array([1.0], offsets=[1], shape=shape)
    one = sparse.eye_array(across)
    moves = rates[0] * sparse.kron(up, one) + rates[1] * sparse.kron(down, one)
    moves = moves + rates[2] * sparse.kron(one, up) + rates[3] * sparse.kron(one, down)
    leaving = np.asarray(moves.sum(axis=0)).ravel() + 10 ** random.uniform(-4, -1)
    return sparse.csr_array(sparse.diags_array(leaving) - moves)


def constrained(random: np.random.Generator, rows: int) -> Matrix:
    """A saddle point: a stiffness matrix with constraints, and a small negative block that keeps it regular."""
    across = int(np.sqrt(0.8 * rows))
    stiffness = sparse.csr_array(poisson((across, across)))
    count = stiffness.shape[0] // 8
    places = (np.repeat(np.arange(count), 3), random.integers(0, stiffness.shape[0], 3 * count))
    rule = sparse.coo_array((random.normal(size=3 * count), places), shape=(count, stiffness.shape[0])).tocsr()
    regular = -(10 ** random.uniform(-4, -1)) * sparse.eye_array(count)
    return sparse.csr_array(sparse.block_array([[stiffness, rule.T], [rule, regular]]))


def _circuit(random: np.random.Generator, rows: int) -> Matrix:
    across = int(np.sqrt(rows))
    numbers = np.arange(across * across).reshape(across, across)
    from_ = np.concatenate([numbers[:-1].ravel(), numbers[:, :-1].ravel()])
    to = np.concatenate([numbers[1:].ravel(), numbers[:, 1:].ravel()])
    kept = random.random(len(from_)) < 0.9
    rails = random.choice(across * across, 3, replace=False)
    fed = random.choice(across * across, across * across // 50, replace=False)
    from_, to = np.append(from_[kept], fed), np.append(to[kept], random.choice(rails, len(fed)))
    apart = from_ != to
    weight = 10 ** random.normal(0, random.uniform(0.3, 1.5), int(apart.sum()))
    return laplacian_of(from_[apart], to[apart], weight, _grounded(random, across * across))


def _grounded(random: np.random.Generator, rows: int) -> np.ndarray:
    return np.where(random.random(rows) < 10 ** random.uniform(-3, -0.5), 1.0, 1e-6)


def _random(random: np.random.Generator, rows: int, above: float) -> Matrix:
    couplings = int(random.integers(3, 10))
    to = random.integers(0, rows, rows * couplings)
    if random.random() < 0.5:  # near the diagonal
        to = np.clip(np.repeat(np.arange(rows), couplings) + random.integers(-60, 61, rows * couplings), 0, rows - 1)
    value = random.normal(size=rows * couplings)
    off = sparse.coo_array((value, (np.repeat(np.arange(rows), couplings), to)), shape=(rows, rows)).tocsr()
    off = off - sparse.diags_array(off.diagonal())
    total = np.asarray(abs(off).sum(axis=1)).ravel() + 1e-3
    return sparse.csr_array(off + sparse.diags_array(above * total * random.choice([1.0, 1.0, 1.0, 3.0], rows)))


def _shuffled(random: np.random.Generator, matrix: Matrix) -> Matrix:
    """The same under a random numbering half of the time: bandwidth then tells nothing."""
    if random.random() < 0.5:
        return matrix
    order = random.permutation(matrix.shape[0])
    return sparse.csr_array(matrix[order][:, order])
