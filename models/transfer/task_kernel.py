"""The covariance of a multi-task Gaussian process and its slopes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from crosswind.data.schema.prediction import Floats

LEVEL_DEVIATION = 1.0  # of a task's log seconds from the tasks' mean, before any run: a factor of e
# Means and standard deviations of normal priors on the logarithms (on atanh for the likeness of tasks).
VARIANCE_PRIOR, LENGTH_PRIOR, NOISE_PRIOR, LIKENESS_PRIOR = (0.0, 1.0), (0.7, 1.0), (-4.0, 1.5), (1.5, 0.8)
VARIANCE_BOUNDS, LENGTH_BOUNDS, NOISE_BOUNDS, LIKENESS_BOUNDS = (-3.0, 3.0), (-2.5, 4.0), (-11.0, 0.0), (-3.0, 3.0)


@dataclass(frozen=True)
class TaskKernel:
    """level * [same task] + variance * B * Matern 5/2, with B = a a' off the diagonal and 1 on it.

    `a` in (-1, 1) is each task's likeness to what all have in common; a reversed source gets a negative one. B is
    positive definite, being a a' plus the positive diagonal 1 - a^2.
    """

    n_columns: int
    n_tasks: int
    level: float  # variance, in standardised units
    theta: Floats  # log variance, log lengths, log noise variance, atanh likenesses

    @classmethod
    def first(cls, n_columns: int, n_tasks: int, spread: float) -> Self:
        """Return the kernel to search from: the priors' means; spread: log seconds in one standardised unit."""
        theta = np.array(
            [VARIANCE_PRIOR[0], *[LENGTH_PRIOR[0]] * n_columns, NOISE_PRIOR[0], *[LIKENESS_PRIOR[0]] * n_tasks]
        )
        return cls(n_columns, n_tasks, (LEVEL_DEVIATION / spread) ** 2, theta)

    def at(self, theta: Floats) -> "TaskKernel":
        """The same kernel with other parameters."""
        return replace(self, theta=np.array(theta, dtype=np.float64))

    @property
    def noise(self) -> float:
        """The variance of a measurement."""
        return float(np.exp(self.theta[1 + self.n_columns]))

    @property
    def variance(self) -> float:
        """The variance of one point before any run."""
        return self.level + float(np.exp(self.theta[0]))

    def covariance(self, squares: Floats, left: Floats, right: Floats) -> Floats:
        """Shape (n_left, n_right), without noise; squares: (n_columns, n_left, n_right), left (n_left,) tasks."""
        same = left[:, None] == right[None, :]
        distance = self._distance(squares)
        common: Floats = np.exp(self.theta[0]) * self._alike(left, right) * _matern(distance)
        return np.where(same, self.level, 0.0) + common

    def with_slopes(self, squares: Floats, tasks: Floats) -> tuple[Floats, Iterator[Floats]]:
        """The covariance of the training points, noise included, and its slope along each parameter."""
        common = np.exp(self.theta[0]) * self._alike(tasks, tasks) * _matern(self._distance(squares))
        same = tasks[:, None] == tasks[None, :]
        covariance = np.where(same, self.level, 0.0) + common + self.noise * np.eye(len(tasks))
        return covariance, self._slopes(squares, tasks, common)

    def _slopes(self, squares: Floats, tasks: Floats, common: Floats) -> Iterator[Floats]:
        yield common
        distance = self._distance(squares)
        steep = np.exp(self.theta[0]) * self._alike(tasks, tasks) * _matern_slope(distance)
        for square, log_length in zip(squares, self.theta[1 : 1 + self.n_columns], strict=True):
            yield steep * square * np.exp(-2 * log_length)
        yield self.noise * np.eye(len(tasks))
        unlike = np.exp(self.theta[0]) * _matern(distance)
        likeness = np.tanh(self._likeness_theta)
        of_row = likeness[tasks.astype(int)]
        for task in range(self.n_tasks):
            mine = tasks == task
            other = np.where(mine[:, None], of_row[None, :], of_row[:, None])
            yield np.where(mine[:, None] != mine[None, :], other, 0.0) * (1 - likeness[task] ** 2) * unlike

    @property
    def _likeness_theta(self) -> Floats:
        return np.asarray(self.theta[2 + self.n_columns :], dtype=np.float64)

    def _alike(self, left: Floats, right: Floats) -> Floats:
        likeness = np.tanh(self._likeness_theta)
        products = np.outer(likeness[left.astype(int)], likeness[right.astype(int)])
        return np.where(left[:, None] == right[None, :], 1.0, products)

    def _distance(self, squares: Floats) -> Floats:
        precisions = np.exp(-2 * self.theta[1 : 1 + self.n_columns])
        return np.asarray(np.sqrt(np.tensordot(precisions, squares, axes=1)), dtype=np.float64)


@dataclass(frozen=True)
class Priors:
    """Normal priors and bounds of the parameters, in the order of `TaskKernel.theta`."""

    means: Floats
    deviations: Floats
    bounds: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, kernel: TaskKernel) -> Self:
        """Those of a kernel of this size."""
        columns, tasks = kernel.n_columns, kernel.n_tasks
        rows = [VARIANCE_PRIOR, *[LENGTH_PRIOR] * columns, NOISE_PRIOR, *[LIKENESS_PRIOR] * tasks]
        bounds = [VARIANCE_BOUNDS, *[LENGTH_BOUNDS] * columns, NOISE_BOUNDS, *[LIKENESS_BOUNDS] * tasks]
        return cls(np.array([row[0] for row in rows]), np.array([row[1] for row in rows]), tuple(bounds))

    def penalty(self, theta: Floats) -> tuple[float, Floats]:
        """Minus the log density, up to a constant, and its slope."""
        distance = (theta - self.means) / self.deviations
        return 0.5 * float(distance @ distance), distance / self.deviations


def _matern(distance: Floats) -> Floats:
    scaled = np.sqrt(5.0) * distance
    return np.asarray((1 + scaled + scaled**2 / 3) * np.exp(-scaled), dtype=np.float64)


def _matern_slope(distance: Floats) -> Floats:
    """d Matern / d log length_j, over the square distance along j in units of its length."""
    scaled = np.sqrt(5.0) * distance
    return np.asarray(5.0 / 3.0 * (1 + scaled) * np.exp(-scaled), dtype=np.float64)
