"""The kinds of matrices, in one list; a matrix is a kind and a seed."""

from collections.abc import Mapping

import numpy as np

from benchmarks.tuning_solvers import composed, grids, meshes, networks, systems
from benchmarks.tuning_solvers.grids import Make, Matrix

# kind -> how it is made, and the most rows that keep a solve below about two seconds.
KINDS: Mapping[str, tuple[Make, int]] = {
    make.__name__: (make, most)
    for make, most in (
        (grids.poisson_2d, 40_000),
        (grids.poisson_3d, 25_000),
        (grids.anisotropic, 35_000),
        (grids.rotated_anisotropic, 40_000),
        (grids.jump_coefficients, 40_000),
        (grids.rough_coefficients, 40_000),
        (grids.stretched, 40_000),
        (grids.heat_step, 40_000),
        (grids.biharmonic, 15_000),
        (grids.elasticity, 25_000),
        (grids.convection_2d, 35_000),
        (grids.convection_3d, 30_000),
        (grids.recirculation, 35_000),
        (grids.helmholtz, 20_000),
        (grids.helmholtz_3d, 12_000),
        (networks.geometric_laplacian, 40_000),
        (networks.scale_free_laplacian, 30_000),
        (networks.resistors, 35_000),
        (networks.amplifiers, 40_000),
        (networks.dominant, 35_000),
        (networks.weakly_dominant, 15_000),
        (networks.dominant_symmetric, 35_000),
        (networks.banded, 40_000),
        (networks.ranking, 35_000),
        (networks.queues, 40_000),
        (networks.constrained, 10_000),
        (meshes.mesh_jumps, 30_000),
        (meshes.streamline_upwind, 30_000),
        (meshes.mesh_time_step, 20_000),
        (meshes.mesh_waves, 20_000),
        (systems.optimality, 8_000),
        (systems.stokes, 6_000),
        (systems.dense_rows, 35_000),
        (systems.truss, 25_000),
        (systems.small_world, 30_000),
        (systems.loose_chain, 25_000),
        (systems.reaction, 30_000),
        (composed.composed, 16_000),
    )
}
LEAST_ROWS = 2500


def matrix_of(kind: str, seed: int) -> Matrix:
    """The matrix of this kind and seed; its size is drawn log-uniformly."""
    make, most = KINDS[kind]
    random = np.random.default_rng([seed, *kind.encode()])
    matrix = make(random, int(np.exp(random.uniform(np.log(LEAST_ROWS), np.log(most)))))
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)  # as SuperLU asks
    return matrix
