"""Naive forecasts that every model must beat: a cohort's next run from its earlier runs."""

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.models.surrogate.conformal import CALIBRATION_ROWS_MIN, conformal_quantile
from crosswind.models.surrogate.surrogate import LEVELS


class Baseline(Protocol):
    """A point forecast of the next value from the earlier ones."""

    name: ClassVar[str]

    def forecast(self, seconds: Floats) -> float:
        """The next value, from (n_runs,) positive ones in the order of time. Raises: InvalidInputError."""
        ...


@dataclass(frozen=True)
class AlwaysMedian:
    """The median of all earlier runs."""

    name: ClassVar[str] = "always_median"

    def forecast(self, seconds: Floats) -> float:
        """The median of the earlier values, in their unit. Raises: InvalidInputError."""
        return float(np.median(_positive(seconds)))


@dataclass(frozen=True)
class Last:
    """The value of the run before."""

    name: ClassVar[str] = "last"

    def forecast(self, seconds: Floats) -> float:
        """The newest value, in its unit. Raises: InvalidInputError."""
        return float(_positive(seconds)[-1])


@dataclass(frozen=True)
class Ewma:
    """The exponentially weighted geometric mean; `newest_weight` is the share of the newest run."""

    newest_weight: float = 0.3
    name: ClassVar[str] = "ewma"

    def forecast(self, seconds: Floats) -> float:
        """The weighted mean of the earlier values, in their unit. Raises: InvalidInputError."""
        logs = np.log(_positive(seconds))
        weights = self.newest_weight * (1 - self.newest_weight) ** np.arange(len(logs))[::-1]
        weights[0] /= self.newest_weight  # the oldest run starts the mean, with the weight that the others leave
        return float(np.exp(weights @ logs))


BASELINES: tuple[Baseline, ...] = (AlwaysMedian(), Last(), Ewma())


def one_step_errors(baseline: Baseline, seconds: Floats) -> Floats:
    """Log ratios of every value but the first to its forecast from those before it, shape (n_runs - 1,)."""
    forecasts = [baseline.forecast(seconds[:index]) for index in range(1, len(seconds))]
    return np.log(seconds[1:]) - np.log(np.array(forecasts, dtype=np.float64))


def distribution(forecast: float, errors: Floats) -> Prediction:
    """Quantiles of the next value, shape (1, n_levels): the forecast spread by the ratios of its past misses.

    errors: (n,) earlier log ratios, two at least; `promised_coverage(n)` is what they can promise.
    Raises: InvalidInputError.
    """
    if len(errors) < CALIBRATION_ROWS_MIN:
        raise InvalidInputError(
            f"{len(errors)} earlier forecasts to learn the spread from, expected at least {CALIBRATION_ROWS_MIN}"
        )
    ratios = np.exp([conformal_quantile(errors, level) for level in LEVELS])
    return monotone(LEVELS, forecast * ratios[None, :])


def _positive(seconds: Floats) -> Floats:
    if seconds.ndim != 1 or len(seconds) == 0 or not np.all(np.isfinite(seconds) & (seconds > 0)):
        raise InvalidInputError(f"earlier runs are {seconds}, expected at least one, all positive numbers of seconds")
    return seconds
