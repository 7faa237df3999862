"""A Gaussian process over several tasks: sources and the target, alike as far as the runs say."""

from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.gp.gp import Solution, leave_one_out
from crosswind.models.surrogate.log_normal import log_normal
from crosswind.models.surrogate.surrogate import NotFittedError
from crosswind.models.transfer.coordinates import Coordinates
from crosswind.models.transfer.task_kernel import TaskKernel
from crosswind.models.transfer.transfer import by_source, check_alike, check_tables, described

SOURCE_ROWS_MAX = 256  # the cost grows with the cube; a subsample of the sources leaves it below a second
STEPS_MAX = 40
# Prior of the spread of log seconds within a task, and its weight in rows: a few runs that happen to be alike must not
# make the process certain of all others.
SPREAD_PRIOR, SPREAD_ROWS = 0.5, 3.0


@dataclass(frozen=True)
class Posterior:
    """The rows learned from: points (n, n_columns) of tasks (n,), and what new points are predicted from."""

    points: Floats
    tasks: Floats
    values: Floats  # (n,) standardised log seconds
    inverse: Floats  # (n, n), of the covariance
    weights: Floats  # (n,), inverse @ values


@dataclass
class MultiTaskGp:
    """Intrinsic coregionalisation: task covariance x Matern 5/2 with one length a column, plus a level for each task.

    Exact, on a subsample of the sources. Without sources it is the target-only model, without target runs the sources'
    common part. Source: Bonilla, Chai, Williams 2008, "Multi-task Gaussian process prediction".
    """

    source_column: str | None = None
    seed: int = 0
    source_rows_max: int = SOURCE_ROWS_MAX
    _coordinates: Coordinates | None = field(default=None, init=False, repr=False)
    _kernel: TaskKernel | None = field(default=None, init=False, repr=False)
    _posterior: Posterior | None = field(default=None, init=False, repr=False)
    _centre: float = field(default=0.0, init=False, repr=False)  # log seconds
    _spread: float = field(default=1.0, init=False, repr=False)  # log seconds

    def fit(self, source: pd.DataFrame, source_seconds: Floats, target: pd.DataFrame, target_seconds: Floats) -> Self:
        """Learns likeness, lengths and noise together, from one row or more. Raises: InvalidInputError."""
        check_tables(source, source_seconds, target, target_seconds, least_source=0)
        sources = by_source(source, source_seconds, self.source_column) if len(source) else {}
        tables = [self._some(*rows, share=len(sources)) for rows in sources.values()]
        own = described(target, self.source_column)
        check_alike(described(source, self.source_column), own)
        tables.append((own, target_seconds))
        filled = [table for table, _ in tables if len(table)]
        if not filled:
            raise InvalidInputError("neither source nor target has a row, expected one at least")
        self._coordinates = Coordinates.of(pd.concat(filled, ignore_index=True))
        points = np.vstack([self._coordinates.points(table) for table in filled])
        tasks = np.concatenate([np.full(len(table), float(task)) for task, (table, _) in enumerate(tables)])
        self._learn(points, tasks, np.log(np.concatenate([seconds for _, seconds in tables])), len(sources))
        return self

    def predict(self, X: pd.DataFrame) -> Prediction:
        """Quantiles at LEVELS on the target, measurement noise included. Raises: NotFittedError, InvalidInputError."""
        if self._coordinates is None or self._kernel is None or self._posterior is None:
            raise NotFittedError("MultiTaskGp.predict came before fit")
        points = self._coordinates.points(described(X, self.source_column))
        posterior = self._posterior
        targets = np.full(len(points), float(self._kernel.n_tasks - 1))
        squares = self._coordinates.square_distances(points, posterior.points)
        cross = self._kernel.covariance(squares, targets, posterior.tasks)
        mean = cross @ posterior.weights
        variance = self._kernel.variance - np.einsum("ij,ij->i", cross @ posterior.inverse, cross)
        deviation = np.sqrt(np.maximum(variance, 0.0) + self._kernel.noise)
        return log_normal(self._centre + self._spread * mean, self._spread * deviation)

    def held_out(self) -> Floats:
        """Medians of the target's runs, (k,), without each of them but with the same kernel. Raises: NotFittedError.

        Source: Rasmussen and Williams 2006, equation 5.12.
        """
        if self._kernel is None or self._posterior is None:
            raise NotFittedError("MultiTaskGp.held_out came before fit")
        posterior = self._posterior
        expected, _ = leave_one_out(posterior.values, posterior.weights, posterior.inverse)
        own = expected[posterior.tasks == self._kernel.n_tasks - 1]
        return np.asarray(np.exp(self._centre + self._spread * own), dtype=np.float64)

    def _some(self, rows: pd.DataFrame, seconds: Floats, *, share: int) -> tuple[pd.DataFrame, Floats]:
        most = max(self.source_rows_max // share, 2)
        if len(rows) <= most:
            return rows, seconds
        chosen = np.sort(np.random.default_rng(self.seed).choice(len(rows), size=most, replace=False))
        return rows.iloc[chosen], seconds[chosen]

    def _learn(self, points: Floats, tasks: Floats, log_seconds: Floats, n_sources: int) -> None:
        means = [float(log_seconds[tasks == task].mean()) for task in np.unique(tasks)]
        inside = np.concatenate([log_seconds[tasks == task] for task in np.unique(tasks)]) - np.repeat(
            means, [int(np.sum(tasks == task)) for task in np.unique(tasks)]
        )
        # The sources' mean level is the prior of the target's, which its own few runs then shift.
        self._centre = float(np.mean(means[:n_sources])) if n_sources else means[0]
        rows = max(len(inside) - len(means), 0)
        self._spread = float(np.sqrt((inside @ inside + SPREAD_ROWS * SPREAD_PRIOR**2) / (rows + SPREAD_ROWS)))
        values = (log_seconds - self._centre) / self._spread
        assert self._coordinates is not None  # noqa: S101  # set by fit just before
        squares = self._coordinates.square_distances(points, points)
        self._kernel = _most_probable(
            TaskKernel.first(len(squares), n_sources + 1, self._spread), squares, tasks, values
        )
        solution = Solution.of(self._kernel.with_slopes(squares, tasks)[0], values)
        self._posterior = Posterior(points, tasks, values, solution.inverse, solution.weights)


def _most_probable(first: TaskKernel, squares: Floats, tasks: Floats, values: Floats) -> TaskKernel:
    def misfit(theta: Floats) -> tuple[float, Floats]:
        covariance, slopes = first.at(theta).with_slopes(squares, tasks)
        solution = Solution.of(covariance, values)
        slope = solution.slope
        return solution.misfit, np.array([np.vdot(slope, along) for along in slopes])

    return first.at(first.priors.most_probable(misfit, steps=STEPS_MAX))
