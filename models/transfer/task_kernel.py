"""The covariance of a multi-task Gaussian process and its slopes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.gp.gp import Priors, matern, matern_with_slope

LEVEL_DEVIATION = 1.0  # of a task's log seconds from the tasks' mean, before any run: a factor of e
# Means and standard deviations of normal priors on the logarithms (on atanh for the likeness of tasks).
VARIANCE_PRIOR, LENGTH_PRIOR, NOISE_PRIOR, LIKENESS_PRIOR = (0.0, 1.0), (0.7, 1.0), (-4.0, 1.5), (1.5, 0.8)
VARIANCE_BOUNDS, LENGTH_BOUNDS, NOISE_BOUNDS, LIKENESS_BOUNDS = (-3.0, 3.0), (-2.5, 4.0), (-11.0, 0.0), (-3.0, 3.0)


@dataclass(frozen=True)
class TaskKernel:
    """level * [same task] + variance * B * Matern 5/2, with B = a a' off the diagonal and 1 on it.

    `a` in (-1, 1) is the likeness of each task to the common part; a reversed source gets a negative one. B is
    positive definite, being a a' plus the positive diagonal 1 - a^2.
    """

    n_columns: int
    n_tasks: int
    level: float  # variance, in standardised units
    theta: Floats  # log variance, log lengths, log noise variance, atanh likenesses

    @classmethod
    def first(cls, n_columns: int, n_tasks: int, spread: float) -> Self:
        """Return the kernel at the means of its priors; spread: log seconds in one standardised unit."""
        return cls(n_columns, n_tasks, (LEVEL_DEVIATION / spread) ** 2, _priors(n_columns, n_tasks).means)

    @property
    def priors(self) -> Priors:
        """Priors of theta for a kernel of this size."""
        return _priors(self.n_columns, self.n_tasks)

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
        """Covariance (n_left, n_right) without noise.

        squares: (n_columns, n_left, n_right); left, right: tasks (n_left,), (n_right,).
        """
        same = left[:, None] == right[None, :]
        return np.where(same, self.level, 0.0) + self._alike(left, right) * self._smooth * matern(
            self._distance(squares)
        )

    def with_slopes(self, squares: Floats, tasks: Floats) -> tuple[Floats, Iterator[Floats]]:
        """The covariance (n, n) of the training points, noise included, and its slopes along theta, (n, n) each."""
        correlation, falling = matern_with_slope(self._distance(squares))
        alike, smooth = self._alike(tasks, tasks), self._smooth * correlation
        same, noise = tasks[:, None] == tasks[None, :], self.noise * np.eye(len(tasks))

        def slopes() -> Iterator[Floats]:
            yield alike * smooth
            steep = alike * self._smooth * falling
            yield from (steep * square * precision for square, precision in zip(squares, self._precisions, strict=True))
            yield noise
            yield from (likeness * smooth for likeness in self._by_likeness(tasks))

        return np.where(same, self.level, 0.0) + alike * smooth + noise, slopes()

    def _by_likeness(self, tasks: Floats) -> Iterator[Floats]:
        """Derivatives of the tasks' likeness to each other by each task's parameter, (n, n) each."""
        likeness = np.tanh(self._likeness_theta)
        of_row = likeness[tasks.astype(int)]
        for task in range(self.n_tasks):
            own = tasks == task
            other = np.where(own[:, None], of_row[None, :], of_row[:, None])
            yield np.where(own[:, None] != own[None, :], other, 0.0) * (1 - likeness[task] ** 2)

    @property
    def _smooth(self) -> float:
        return float(np.exp(self.theta[0]))

    @property
    def _precisions(self) -> Floats:
        return np.exp(-2 * self.theta[1 : 1 + self.n_columns])

    @property
    def _likeness_theta(self) -> Floats:
        return np.asarray(self.theta[2 + self.n_columns :], dtype=np.float64)

    def _alike(self, left: Floats, right: Floats) -> Floats:
        likeness = np.tanh(self._likeness_theta)
        products = np.outer(likeness[left.astype(int)], likeness[right.astype(int)])
        return np.where(left[:, None] == right[None, :], 1.0, products)

    def _distance(self, squares: Floats) -> Floats:
        return np.sqrt(5 * np.tensordot(self._precisions, squares, axes=1))


def _priors(n_columns: int, n_tasks: int) -> Priors:
    rows = [VARIANCE_PRIOR, *[LENGTH_PRIOR] * n_columns, NOISE_PRIOR, *[LIKENESS_PRIOR] * n_tasks]
    bounds = [VARIANCE_BOUNDS, *[LENGTH_BOUNDS] * n_columns, NOISE_BOUNDS, *[LIKENESS_BOUNDS] * n_tasks]
    return Priors.of(rows, bounds)
