"""Features of a sparse matrix from the first iterations of a solve, as few as the choice is worth."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from benchmarks.tuning_solvers.matrix_rows import TINY, Matrix, Vector

FEW, MANY = 4, 32  # products of matrix and vector
SHARE = 0.05  # of the solve's expected products, beyond which probing is too dear
EQUAL = 1.05  # largest over smallest of a diagonal that makes no difference
LEAST_RESIDUAL, LARGEST = 1e-12, 1e3
LEAST_FALL = 0.05  # of a residual's logarithm: below it, nothing is known but that it stands still
ENOUGH = float(np.log(1e8))


@dataclass(frozen=True)
class Start:
    """A random direction, its image, and the inverse of the diagonal's magnitude (1 where that is zero)."""

    along: Vector
    image: Vector
    inverse: Vector

    @classmethod
    def of(cls, rows: Matrix, random: np.random.Generator) -> Self:
        along = random.random(rows.shape[0]) - 0.5
        diagonal = np.abs(rows.diagonal())
        diagonal[diagonal == 0] = 1
        return cls(along, rows @ along, 1 / diagonal)

    def asymmetry(self, rows: Matrix) -> float:
        """Length of (A - A') x over that of A x for its direction x: zero only where A is symmetric, 2 if skew."""
        apart = self.image - rows.T @ self.along
        return float(np.sqrt(apart @ apart) / max(float(np.sqrt(self.image @ self.image)), TINY))


def probe_features(rows: Matrix, start: Start, is_symmetric: bool, log_level_work: float) -> dict[str, float]:
    """Return what FEW products of CG (BiCGSTAB where not symmetric) show, with division by the diagonal.

    `log_products` is the logarithm of the products to a residual of 1e-8 if it went on falling like this, `_late` that
    by the latter half of them, and `log_direct_to_iterative` what a factorisation should cost over that. Source: Saad,
    Iterative methods for sparse linear systems, 2003, algorithms 6.18 and 7.7.
    """
    log_direct = log_level_work - float(np.log(rows.nnz))
    probe = Probe.of(rows, start, is_symmetric, log_direct, most=FEW)
    return {
        "log_products": probe.log_products,
        "log_products_late": probe.log_products_late,
        "log_first_residual": probe.norms[1],
        "curvature_min": probe.curvature_min,
        "log_direct_to_iterative": log_direct - probe.log_products,
    }


def further_probes(rows: Matrix, start: Start, is_symmetric: bool, log_level_work: float) -> dict[str, float]:
    """Return the same of up to MANY products, with division by the diagonal and without.

    A probe ends when its products are SHARE of those that the cheaper way should take.
    """
    log_direct = log_level_work - float(np.log(rows.nnz))
    scaled = Probe.of(rows, start, is_symmetric, log_direct, most=MANY)
    plain = scaled
    if start.inverse.max() > EQUAL * start.inverse.min():
        unscaled = replace(start, inverse=np.ones(len(start.inverse)))
        plain = Probe.of(rows, unscaled, is_symmetric, log_direct, most=MANY)
    return {
        "log_products_jacobi": scaled.log_products,
        "log_products_jacobi_late": scaled.log_products_late,
        "log_products_probed": float(np.log(scaled.products)),
        "log_rise": max(scaled.norms) - min(scaled.norms),
        "curvature_min_late": scaled.curvature_min,
        "log_direct_to_jacobi": log_direct - scaled.log_products,
        "log_products_plain": plain.log_products,
        "log_products_plain_late": plain.log_products_late,
    }


@dataclass(frozen=True)
class Probe:
    """Logarithms of the residual's norm over the first one, from 0.0 on, and the least curvature met."""

    norms: list[float]
    curvature_min: float
    products: int

    @classmethod
    def of(cls, rows: Matrix, start: Start, is_symmetric: bool, log_direct: float, *, most: int) -> Self:
        products_per_step = 1 if is_symmetric else 2
        norms, lowest, products = [0.0], 10.0, 0
        with np.errstate(all="ignore"):
            for norm, curvature in (_conjugate_gradients if is_symmetric else _bicgstab)(rows, start):
                norms.append(_log(norm))
                lowest = min(lowest, max(curvature, -10.0) if np.isfinite(curvature) else -10.0)
                products = products_per_step * (len(norms) - 1)
                expected = np.exp(min(log_direct, _log_products(-min(norms), products)))
                if products >= most or norms[-1] < -ENOUGH or products >= max(FEW, SHARE * expected):
                    break
        return cls(norms, lowest, products)

    @property
    def log_products(self) -> float:
        return _log_products(-min(self.norms), self.products)

    @property
    def log_products_late(self) -> float:
        steps = len(self.norms) - 1
        half = max(steps // 2, 1)
        if half == steps:
            return self.log_products
        return _log_products(min(self.norms[: half + 1]) - min(self.norms), self.products * (steps - half) / steps)


def _log(norm: float) -> float:
    return float(np.log(min(max(norm, LEAST_RESIDUAL), LARGEST))) if np.isfinite(norm) else float(np.log(LARGEST))


def _log_products(fall: float, products: float) -> float:
    """The logarithm of the products to a residual of 1e-8, from the fall of its logarithm over so many of them."""
    return float(np.log(products * ENOUGH / max(fall, LEAST_FALL)))


def _conjugate_gradients(rows: Matrix, start: Start) -> Iterator[tuple[float, float]]:
    """Yield the residual's norm over the first one, and the Rayleigh quotient of the direction, scaled by the diagonal.

    A quotient below zero shows that the matrix is not definite.
    """
    inverse, along, image = start.inverse, start.along, start.image
    left = along / inverse
    first, before = np.sqrt(left @ left), float(left @ along)
    while True:
        curved = float(along @ image)
        left = left - before / curved * image
        yield float(np.sqrt(left @ left) / first), curved / max(float((along / inverse) @ along), TINY)
        scaled = inverse * left
        now = float(left @ scaled)
        along, before = scaled + now / before * along, now
        image = rows @ along


def _bicgstab(rows: Matrix, start: Start) -> Iterator[tuple[float, float]]:
    """Yield the same; the quotient is that of the scaled matrix with half a step's residual."""
    inverse, image = start.inverse, start.image
    left = along = shadow = start.along / inverse
    first, before = np.sqrt(left @ left), float(left @ left)
    while True:
        step = before / float(shadow @ image)
        half = left - step * image
        turned = rows @ (inverse * half)
        turning = float(turned @ half)
        weight = turning / float(turned @ turned)
        left = half - weight * turned
        yield float(np.sqrt(left @ left) / first), turning / max(float(half @ half), TINY)
        now = float(shadow @ left)
        along = left + now / before * step / weight * (along - weight * image)
        before = now
        image = rows @ (inverse * along)
