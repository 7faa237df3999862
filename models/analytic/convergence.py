"""The number of steps that training needs, and its time to accuracy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import least_squares
from scipy.stats import norm

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.analytic.checks import require_not_negative, require_positive

BATCHES_MIN = 2  # different ones, for two constants
SPREAD_MIN = 1e-3
SPREAD_GUESS, GUESS_WEIGHT = 0.1, 1.0  # of log steps from seed to seed, a prior with the weight of one run


@dataclass(frozen=True)
class StepsToTarget:
    """S(B) = S_min (1 + B_noise / B): small batches waste steps on noise, large ones samples.

    Source: McCandlish, Kaplan, Amodei et al. 2018, "An empirical model of large-batch training".
    """

    steps_min: float
    noise_batch: float
    log_covariance: Floats  # (2, 2), of the logarithms of both
    spread: float  # standard deviation of log steps from run to run

    def __post_init__(self) -> None:
        require_positive(steps_min=self.steps_min, noise_batch=self.noise_batch)
        require_not_negative(spread=self.spread)

    @classmethod
    def fit(cls, batches: Floats, steps: Floats) -> Self:
        """Fit to runs, (n,) each: log residuals by soft L1, covariance by Gauss-Newton. Raises: InvalidInputError."""
        batches, steps = np.asarray(batches, np.float64), np.asarray(steps, np.float64)
        _check(batches, steps)
        scale = SPREAD_GUESS

        def residuals(logs: Floats) -> Floats:
            return np.asarray((_log_steps(logs, batches) - np.log(steps)) / scale, np.float64)

        start = np.array([np.log(steps.min() / 2), np.log(np.median(batches))])
        solved = least_squares(residuals, start, loss="soft_l1")
        misses = residuals(solved.x) * scale
        free = len(steps) - 2
        spread = np.sqrt((misses @ misses + GUESS_WEIGHT * scale**2) / (max(free, 0) + GUESS_WEIGHT))
        # Batches all far above or below B_noise leave one constant open: a prior of a factor e^3 keeps it finite.
        information = solved.jac.T @ solved.jac * scale**2 / spread**2 + np.eye(2) / 3.0**2
        return cls(
            steps_min=float(np.exp(solved.x[0])),
            noise_batch=float(np.exp(solved.x[1])),
            log_covariance=np.linalg.inv(information),
            spread=max(float(spread), SPREAD_MIN),
        )

    def steps(self, batches: Floats) -> Floats:
        """Median steps to target at these batches, (n,)."""
        return np.asarray(np.exp(_log_steps(self._logs, np.asarray(batches, np.float64))), np.float64)

    def log_spread(self, batches: Floats) -> Floats:
        """Standard deviation of the logarithm of the next run's steps, (n,): the constants' and the run's own."""
        ratio = self.noise_batch / np.asarray(batches, np.float64)
        slopes = np.column_stack([np.ones_like(ratio), ratio / (1 + ratio)])
        variance = np.einsum("ni,ij,nj->n", slopes, self.log_covariance, slopes) + self.spread**2
        return np.asarray(np.sqrt(variance), np.float64)

    def interval(self, batches: Floats, *, level: float = 0.9) -> tuple[Floats, Floats]:
        """The interval of steps to target of the next run at this probability, (n,) each."""
        if not 0 < level < 1:
            raise InvalidInputError(f"level is {level}, expected between 0 and 1")
        reach = float(norm.ppf((1 + level) / 2)) * self.log_spread(batches)
        centre = self.steps(batches)
        return centre * np.exp(-reach), centre * np.exp(reach)

    @property
    def _logs(self) -> Floats:
        return np.log(np.array([self.steps_min, self.noise_batch], np.float64))


def time_to_accuracy(steps: StepsToTarget, batches: Floats, step_seconds: Prediction) -> Prediction:
    """Seconds to target: steps x step time, both spreads together, at the levels of `step_seconds`.

    Logarithms add up, so do their variances; the step time's is read off its 0.1 and 0.9 quantiles as of a log-normal.
    Raises: InvalidInputError when the rows differ in number.
    """
    batches = np.asarray(batches, np.float64)
    if len(batches) != len(step_seconds.values):
        raise InvalidInputError(
            f"batches are {len(batches)}, expected {len(step_seconds.values)} as rows of step_seconds"
        )
    step_spread = np.log(step_seconds.at(0.9) / step_seconds.at(0.1)) / (norm.ppf(0.9) - norm.ppf(0.1))
    spread = np.sqrt(steps.log_spread(batches) ** 2 + step_spread**2)
    centre = np.log(steps.steps(batches) * step_seconds.at(0.5))
    return Prediction(step_seconds.levels, _log_normal(centre, spread, step_seconds.levels))


def _log_normal(centre: Floats, spread: Floats, levels: Sequence[float]) -> Floats:
    return np.asarray(np.exp(centre[:, None] + spread[:, None] * norm.ppf(levels)[None, :]), np.float64)


def _log_steps(logs: Floats, batches: Floats) -> Floats:
    return np.asarray(logs[0] + np.logaddexp(0.0, logs[1] - np.log(batches)), np.float64)


def _check(batches: Floats, steps: Floats) -> None:
    if batches.shape != steps.shape or batches.ndim != 1:
        raise InvalidInputError(f"batches have shape {batches.shape} and steps {steps.shape}, expected (n,) each")
    for name, values in (("batches", batches), ("steps", steps)):
        if not np.all(np.isfinite(values) & (values > 0)):
            raise InvalidInputError(f"{name} hold a number that is not positive, expected positive numbers")
    if len(np.unique(batches)) < BATCHES_MIN:
        raise InvalidInputError(
            f"batches hold {len(np.unique(batches))} different sizes, expected at least {BATCHES_MIN}"
        )
