"""Matrices of equations on grids, made from a random generator and a size."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from pyamg.gallery import diffusion_stencil_2d, linear_elasticity, poisson, stencil_grid
from scipy import sparse

Matrix: TypeAlias = sparse.csr_array
Floats: TypeAlias = npt.NDArray[np.float64]
Make: TypeAlias = Callable[[np.random.Generator, int], Matrix]  # of about so many rows


def poisson_2d(random: np.random.Generator, rows: int) -> Matrix:
    """The five-point Laplacian on a rectangle."""
    return sparse.csr_array(poisson(_rectangle(random, rows)))


def poisson_3d(random: np.random.Generator, rows: int) -> Matrix:
    """The seven-point Laplacian on a box."""
    return sparse.csr_array(poisson(_box(random, rows)))


def anisotropic(random: np.random.Generator, rows: int) -> Matrix:
    """Diffusion that is 3 to 10^4 times as strong along one axis, nine-point finite elements."""
    return _diffusion(random, rows, angle=0.0)


def rotated_anisotropic(random: np.random.Generator, rows: int) -> Matrix:
    """The same along a direction that the grid does not follow."""
    return _diffusion(random, rows, angle=float(random.uniform(0.2, 1.3)))


def jump_coefficients(random: np.random.Generator, rows: int) -> Matrix:
    """Diffusion whose coefficient jumps by 10 to 10^6 from block to block."""
    shape = _rectangle(random, rows)
    blocks = np.exp(random.uniform(0, random.uniform(2.3, 13.8), (1 + shape[0] // 8, 1 + shape[1] // 8)))
    return _divided(np.kron(blocks, np.ones((8, 8)))[: shape[0], : shape[1]])


def rough_coefficients(random: np.random.Generator, rows: int) -> Matrix:
    """Diffusion whose coefficient is log-normal in each cell."""
    return _divided(np.exp(random.normal(0, random.uniform(0.5, 3), _rectangle(random, rows))))


def stretched(random: np.random.Generator, rows: int) -> Matrix:
    """The Laplacian on a grid whose spacing grows geometrically, as towards a wall."""
    across, along = _rectangle(random, rows)
    growth = float(random.uniform(1.02, 1.15))
    first = _line(np.minimum(growth ** np.arange(across + 1), 1e4))
    second = _line(np.ones(along + 1))
    return sparse.csr_array(sparse.kron(first[0], second[1]) + sparse.kron(first[1], second[0]))


def heat_step(random: np.random.Generator, rows: int) -> Matrix:
    """One implicit step in time of the heat equation: identity plus 0.1 to 10^3 Laplacians."""
    laplacian = poisson(_box(random, rows) if random.random() < 0.5 else _rectangle(random, rows))
    return sparse.csr_array(sparse.eye_array(laplacian.shape[0]) + 10 ** random.uniform(-1, 3) * laplacian)


def biharmonic(random: np.random.Generator, rows: int) -> Matrix:
    """The plate's equation: the square of the Laplacian, thirteen points, very ill-conditioned."""
    laplacian = sparse.csr_array(poisson(_rectangle(random, rows)))
    return sparse.csr_array(laplacian @ laplacian)


def elasticity(random: np.random.Generator, rows: int) -> Matrix:
    """Plane elasticity, two unknowns a point."""
    across = int(np.sqrt(rows // 2))
    matrix, _ = linear_elasticity((across, across), nu=float(random.uniform(0.1, 0.45)), format="csr")
    return sparse.csr_array(matrix)


def convection_2d(random: np.random.Generator, rows: int) -> Matrix:
    """Diffusion with a constant wind, upwind differences, grid Peclet number 0.01 to 100."""
    shape = _rectangle(random, rows)
    return _with_wind(poisson(shape), [np.full(shape, speed) for speed in random.normal(size=2)], _peclet(random))


def convection_3d(random: np.random.Generator, rows: int) -> Matrix:
    """The same in a box."""
    shape = _box(random, rows)
    return _with_wind(poisson(shape), [np.full(shape, speed) for speed in random.normal(size=3)], _peclet(random))


def recirculation(random: np.random.Generator, rows: int) -> Matrix:
    """Diffusion with a wind that goes round in closed vortices."""
    shape = _rectangle(random, rows)
    across, along = np.meshgrid(*(np.linspace(0, random.integers(1, 4) * np.pi, n) for n in shape), indexing="ij")
    wind = [np.sin(across) * np.cos(along), -np.cos(across) * np.sin(along)]
    return _with_wind(poisson(shape), wind, _peclet(random))


def helmholtz(random: np.random.Generator, rows: int) -> Matrix:
    """The Laplacian minus a shift above its lowest eigenvalues: symmetric and indefinite."""
    laplacian = poisson(_rectangle(random, rows))
    return _shifted(laplacian, 10 ** random.uniform(-2.5, -0.3))


def helmholtz_3d(random: np.random.Generator, rows: int) -> Matrix:
    """The same in a box."""
    return _shifted(poisson(_box(random, rows)), 10 ** random.uniform(-1.5, -0.2))


def _shifted(laplacian: Matrix, shift: float) -> Matrix:
    return sparse.csr_array(laplacian - shift * sparse.eye_array(laplacian.shape[0]))


def _rectangle(random: np.random.Generator, rows: int) -> tuple[int, int]:
    across = int(np.sqrt(rows) * random.uniform(0.6, 1.6))
    return across, rows // across


def _box(random: np.random.Generator, rows: int) -> tuple[int, int, int]:
    across = int(np.cbrt(rows) * random.uniform(0.7, 1.4))
    return (across, *_rectangle(random, rows // across))


def _peclet(random: np.random.Generator) -> float:
    return float(10 ** random.uniform(-2, 2))


def _diffusion(random: np.random.Generator, rows: int, angle: float) -> Matrix:
    stencil = diffusion_stencil_2d(epsilon=10 ** random.uniform(-4, -0.5), theta=angle, type="FE")
    return sparse.csr_array(stencil_grid(stencil, _rectangle(random, rows), format="csr"))


def _divided(coefficient: Floats) -> Matrix:
    """- div (coefficient grad u) by finite volumes, harmonic means on faces, zero beyond the border."""
    numbers = np.arange(coefficient.size).reshape(coefficient.shape)
    from_, to, weight = [], [], []
    for axis in (0, 1):
        first, second = (np.take(coefficient, _but(axis, last, coefficient.shape), axis) for last in (True, False))
        weight.append((2 * first * second / (first + second)).ravel())
        from_.append(np.take(numbers, _but(axis, True, coefficient.shape), axis).ravel())
        to.append(np.take(numbers, _but(axis, False, coefficient.shape), axis).ravel())
    return laplacian_of(np.concatenate(from_), np.concatenate(to), np.concatenate(weight), _border(coefficient))


def _but(axis: int, last: bool, shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    return np.arange(shape[axis] - 1) + (0 if last else 1)


def _border(coefficient: Floats) -> Floats:
    outside = np.zeros_like(coefficient)
    outside[[0, -1], :] += 2 * coefficient[[0, -1], :]
    outside[:, [0, -1]] += 2 * coefficient[:, [0, -1]]
    return outside.ravel()


def laplacian_of(from_: npt.NDArray[np.int64], to: npt.NDArray[np.int64], weight: Floats, ground: Floats) -> Matrix:
    """The weighted graph's Laplacian, each vertex joined to the ground by its conductance."""
    shape = (len(ground), len(ground))
    half = sparse.coo_array((weight, (from_, to)), shape=shape).tocsr()
    both = half + half.T
    return sparse.csr_array(sparse.diags_array(np.asarray(both.sum(axis=1)).ravel() + ground) - both)


def _line(widths: Floats) -> tuple[Matrix, Matrix]:
    """Stiffness and (lumped) mass along one axis with cells of these widths, zero at both ends."""
    inverse = 1 / widths
    stiffness = sparse.diags_array([-inverse[1:-1], inverse[:-1] + inverse[1:], -inverse[1:-1]], offsets=[-1, 0, 1])
    return sparse.csr_array(stiffness), sparse.csr_array(sparse.diags_array((widths[:-1] + widths[1:]) / 2))


def _with_wind(diffusion: Matrix, wind: list[Floats], peclet: float) -> Matrix:
    """Adds upwind differences of the wind's speed times the grid Peclet number."""
    shape = wind[0].shape
    total = sparse.csr_array(diffusion)
    for axis, speed in enumerate(wind):
        backward = _along(sparse.diags_array([-1.0, 1.0], offsets=[-1, 0], shape=(shape[axis],) * 2), axis, shape)
        forward = _along(sparse.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(shape[axis],) * 2), axis, shape)
        flat = peclet * speed.ravel()
        total = total + sparse.diags_array(np.maximum(flat, 0)) @ backward
        total = total + sparse.diags_array(np.minimum(flat, 0)) @ forward
    return sparse.csr_array(total)


def _along(line: Matrix, axis: int, shape: tuple[int, ...]) -> Matrix:
    before, after = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :]))
    return sparse.kron(sparse.kron(sparse.eye_array(before), line), sparse.eye_array(after))
