"""Matrices of coupled equations, of optimisation, and of chains and networks unlike those of `networks`."""

import numpy as np
from pyamg.gallery import poisson
from scipy import sparse
from scipy.spatial import Delaunay

from benchmarks.tuning_solvers.grids import Matrix, laplacian_of


def optimality(random: np.random.Generator, rows: int) -> Matrix:
    """An interior point's step of a quadratic program: a spread diagonal, couplings, and rules with few entries."""
    unknowns = int(rows / 1.3)
    rules, spread = rows - unknowns, random.uniform(0.5, 3)
    half = sparse.random_array((unknowns, unknowns), density=1 / unknowns, rng=random)
    hessian = half @ half.T + sparse.diags_array(10 ** random.uniform(-spread, spread, unknowns))
    places = (np.repeat(np.arange(rules), 4), random.integers(0, unknowns, 4 * rules))
    rule = sparse.coo_array((random.normal(size=4 * rules), places), shape=(rules, unknowns)).tocsr()
    return _saddle(hessian, rule, 10 ** random.uniform(-8, -4))


def stokes(random: np.random.Generator, rows: int) -> Matrix:
    """Slow flow on a staggered grid: two velocities and a pressure, which is kept regular by a little compression."""
    across = int(np.sqrt(rows / 3))
    inner, cells = across - 1, across
    jump = sparse.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(inner, cells))
    one = sparse.eye_array(cells)
    velocity = sparse.block_diag([poisson((inner, cells)), poisson((cells, inner))])
    divergence = sparse.hstack([sparse.kron(jump.T, one), sparse.kron(one, jump.T)])
    return _saddle(velocity, sparse.csr_array(divergence), 10 ** random.uniform(-6, -3))


def dense_rows(random: np.random.Generator, rows: int) -> Matrix:
    """A chain of circuit cells with a few nodes that reach a twentieth of all others, half of the time one way only."""
    near = np.arange(rows - 1)
    hubs = random.choice(rows, int(random.integers(2, 5)), replace=False)
    reached = random.integers(0, rows, (len(hubs), rows // 20))
    from_, to = np.append(near, np.repeat(hubs, rows // 20)), np.append(near + 1, reached.ravel())
    weight = 10 ** random.normal(0, 0.5, len(from_)) * (from_ != to)
    matrix = laplacian_of(from_, to, weight, 10 ** random.uniform(-4, -1) * np.ones(rows))
    if random.random() < 0.5:
        return matrix
    places = (np.repeat(hubs, rows // 20), random.integers(0, rows, len(hubs) * (rows // 20)))
    gain = sparse.coo_array((random.normal(0, 0.1, places[0].size), places), shape=matrix.shape).tocsr()
    return sparse.csr_array(matrix + gain)


def truss(random: np.random.Generator, rows: int) -> Matrix:
    """Bars between random points of the plane, stiff by their length and section; some points stand on the ground."""
    points = random.random((rows // 2, 2))
    triangles = Delaunay(points).simplices
    bars = np.unique(
        np.sort(np.vstack([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1), axis=0
    )
    along = points[bars[:, 1]] - points[bars[:, 0]]
    length = np.linalg.norm(along, axis=1)
    unit, stiff = along / length[:, None], 10 ** random.normal(0, 0.3, len(bars)) / (length * np.sqrt(rows))
    bar = np.repeat(np.arange(len(bars)), 4)
    places = np.column_stack([2 * bars[:, 0], 2 * bars[:, 0] + 1, 2 * bars[:, 1], 2 * bars[:, 1] + 1])
    stretch = sparse.coo_array(
        (np.hstack([-unit, unit]).ravel(), (bar, places.ravel())), shape=(len(bars), len(points) * 2)
    )
    stretch = stretch.tocsr()
    ground = np.repeat(np.where(random.random(len(points)) < 10 ** random.uniform(-2.5, -0.5), 1.0, 1e-6), 2)
    return sparse.csr_array(stretch.T @ sparse.diags_array(stiff) @ stretch + sparse.diags_array(ground))


def small_world(random: np.random.Generator, rows: int) -> Matrix:
    """A ring of neighbours of whose edges some lead anywhere instead. Source: Watts and Strogatz 1998."""
    reach = int(random.integers(2, 5))
    from_ = np.repeat(np.arange(rows), reach)
    to = (from_ + np.tile(np.arange(1, reach + 1), rows)) % rows
    anywhere = random.random(len(to)) < 10 ** random.uniform(-3.5, -0.5)
    to = np.where(anywhere, random.integers(0, rows, len(to)), to)
    weight = np.exp(random.normal(0, 0.5, len(to))) * (from_ != to)
    return laplacian_of(from_, to, weight, 10 ** random.uniform(-5, -1) * np.ones(rows))


def loose_chain(random: np.random.Generator, rows: int) -> Matrix:
    """A Markov chain of clusters that are seldom left, transposed, with a little leak: not symmetric, near singular."""
    cluster, links = int(random.integers(20, 200)), int(random.integers(3, 8))
    from_ = np.repeat(np.arange(rows), links)
    inside = (from_ // cluster) * cluster + random.integers(0, cluster, len(from_))
    leaves = random.random(len(from_)) < 10 ** random.uniform(-3, -1)
    to = np.where(leaves, random.integers(0, rows, len(from_)), np.minimum(inside, rows - 1))
    chance = random.random((rows, links)) + 0.05
    chance = (chance / chance.sum(axis=1, keepdims=True)).ravel() * (1 - 10 ** random.uniform(-5, -2))
    moves = sparse.coo_array((chance, (to, from_)), shape=(rows, rows)).tocsr()
    return sparse.csr_array(sparse.eye_array(rows) - moves)


def reaction(random: np.random.Generator, rows: int) -> Matrix:
    """A step in time of two species that spread unequally and turn into each other, side by side at each grid point."""
    across = int(np.sqrt(rows / 2))
    spread = poisson((across, across))
    slow, step = 10 ** random.uniform(-3, 0), 10 ** random.uniform(-1, 2.5)
    turning = random.normal(0, 1, (2, 2)) + 1.5 * np.eye(2)
    identity = sparse.eye_array(spread.shape[0])
    coupled = sparse.kron(spread, sparse.diags_array([1.0, slow])) + sparse.kron(identity, turning / across)
    return sparse.csr_array(sparse.eye_array(coupled.shape[0]) + step * coupled)


def _saddle(stiffness: Matrix, rule: Matrix, compression: float) -> Matrix:
    corner = -compression * sparse.eye_array(rule.shape[0])
    return sparse.csr_array(sparse.block_array([[stiffness, rule.T], [rule, corner]]))
