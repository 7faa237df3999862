"""Matrices of linear finite elements on triangles and tetrahedra between random points."""

from dataclasses import dataclass
from math import factorial

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial import Delaunay

from benchmarks.tuning_solvers.grids import Floats, Matrix

FLAT = 1e-6  # of the mean volume: thinner simplices, as at the hull, are left out
RIM = 0.02  # of the unit box's edge: the solution is zero at points nearer to the border


@dataclass(frozen=True)
class Mesh:
    """Simplices of random points in the unit square or cube; `inner` are the points that are solved for.

    corners: (m, d + 1) numbers of points; gradients: (m, d + 1, d) of the hat functions; volumes: (m,).
    """

    centres: Floats
    corners: npt.NDArray[np.int64]
    gradients: Floats
    volumes: Floats
    inner: npt.NDArray[np.int64]

    @classmethod
    def random(cls, random: np.random.Generator, rows: int, dimensions: int) -> "Mesh":
        """About so many inner points, numbered from left to right half of the time."""
        points = random.random((int(rows / (1 - 2 * RIM) ** dimensions), dimensions))
        if random.random() < 0.5:
            points = points[np.argsort(points[:, 0])]
        corners = Delaunay(points).simplices.astype(np.int64)
        edges = points[corners[:, 1:]] - points[corners[:, :1]]
        volumes = np.abs(np.linalg.det(edges)) / factorial(dimensions)
        thick = volumes > FLAT * volumes.mean()
        inverse = np.swapaxes(np.linalg.inv(edges[thick]), 1, 2)
        gradients = np.concatenate([-inverse.sum(axis=1, keepdims=True), inverse], axis=1)
        inner = np.flatnonzero((np.abs(points - 0.5) < 0.5 - RIM).all(axis=1))
        return cls(points[corners[thick]].mean(axis=1), corners[thick], gradients, volumes[thick], inner)

    def stiffness(self, coefficient: Floats | float = 1.0) -> Matrix:
        """Of - div (coefficient grad u), the coefficient one number a simplex."""
        return self.assembled(np.einsum("m,mid,mjd->mij", coefficient * self.volumes, self.gradients, self.gradients))

    def mass(self) -> Matrix:
        """Integrals of products of hat functions."""
        count = self.corners.shape[1]
        local = (np.eye(count) + 1) / (count * (count + 1))
        return self.assembled(self.volumes[:, None, None] * local)

    def assembled(self, local: Floats) -> Matrix:
        """The sum of the simplices' matrices, shape (m, d + 1, d + 1), at the inner points."""
        count, most = self.corners.shape[1], int(self.corners.max()) + 1
        line, column = np.repeat(self.corners, count, axis=1).ravel(), np.tile(self.corners, count).ravel()
        whole = sparse.coo_array((local.ravel(), (line, column)), shape=(most, most)).tocsr()
        return sparse.csr_array(whole[self.inner][:, self.inner])


def mesh_jumps(random: np.random.Generator, rows: int) -> Matrix:
    """Diffusion on triangles whose coefficient jumps by 10 to 10^6 between 36 squares."""
    mesh = Mesh.random(random, rows, 2)
    squares = np.exp(random.uniform(0, random.uniform(2.3, 13.8), (6, 6)))
    place = (6 * mesh.centres).astype(np.int64)
    return mesh.stiffness(squares[place[:, 0], place[:, 1]])


def streamline_upwind(random: np.random.Generator, rows: int) -> Matrix:
    """Convection and diffusion on triangles, stabilised along the streamlines; mesh Peclet number 0.1 to 100.

    Source: Brooks and Hughes 1982 (SUPG), tau = h / (2 |wind|) (1 - 1 / Peclet) where the Peclet number is above 1.
    """
    mesh = Mesh.random(random, rows, 2)
    angle, size = random.uniform(0, 2 * np.pi), 1 / np.sqrt(len(mesh.volumes))
    peclet = 10 ** random.uniform(-1, 2)
    along = mesh.gradients @ np.array([np.cos(angle), np.sin(angle)])
    upwind = size / 2 * max(0.0, 1 - 1 / peclet)
    carried = np.einsum("m,mj->mj", mesh.volumes / 3, along)[:, None, :] * np.ones((1, 3, 1))
    smoothed = np.einsum("m,mi,mj->mij", upwind * mesh.volumes, along, along)
    return sparse.csr_array(mesh.stiffness(size / (2 * peclet)) + mesh.assembled(carried + smoothed))


def mesh_time_step(random: np.random.Generator, rows: int) -> Matrix:
    """Mass and stiffness on tetrahedra: a step of heat that reaches 0.1 to 30 times as far as a point's neighbours."""
    mesh = Mesh.random(random, rows, 3)
    reach = 10 ** random.uniform(-1, 1.5) / np.cbrt(rows)
    return sparse.csr_array(mesh.mass() + reach**2 * mesh.stiffness())


def mesh_waves(random: np.random.Generator, rows: int) -> Matrix:
    """Stiffness minus mass on triangles, 1 to 12 waves across: symmetric and indefinite."""
    mesh = Mesh.random(random, rows, 2)
    waves = random.uniform(1, 12)
    return sparse.csr_array(mesh.stiffness() - (2 * np.pi * waves) ** 2 * mesh.mass())
