"""Calibration of the constants from measured runs."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.analytic.machine.constants import NAMES, SPREADS, Constants

SPREAD_START = 0.1  # of log residuals, before there are any
SPREAD_MIN = 0.01  # formulas are not more accurate than 1 %
REFITS = 3
SETTLED = 0.1  # of the logarithm of the spread
EVALUATIONS_MAX = 60
TOLERANCE = 1e-4
REACH = 6.0  # standard deviations of the priors, no constant is searched beyond
DIFFERENCE = 1e-4  # of log constants, for derivatives
MOVE = 0.5  # of a log constant, to test whether it matters: past the kinks where one time hides another


@dataclass(frozen=True)
class Calibration:
    """Estimates of the constants from runs; `logs` are natural logarithms in the order of NAMES."""

    logs: Floats  # (n_constants,)
    log_covariance: Floats  # (n_constants, n_constants)
    residual_spread: float  # standard deviation of log(measured / formula)

    @property
    def constants(self) -> Constants:
        """The most likely ones."""
        return Constants.of_logs(self.logs)

    def interval(self, name: str, *, level: float = 0.9) -> tuple[float, float]:
        """The interval of a constant at this probability. Raises: InvalidInputError."""
        if name not in NAMES:
            raise InvalidInputError(f"constant is {name!r}, expected one of {', '.join(NAMES)}")
        if not 0 < level < 1:
            raise InvalidInputError(f"level is {level}, expected between 0 and 1")
        place = NAMES.index(name)
        reach = float(NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(self.log_covariance[place, place]))
        return float(np.exp(self.logs[place] - reach)), float(np.exp(self.logs[place] + reach))


def prior() -> Calibration:
    """Return the calibration before any run: the priors."""
    spreads = np.array([SPREADS[name] for name in NAMES])
    return Calibration(Constants().logs(), np.diag(spreads**2), SPREAD_START)


def calibrate(seconds: Callable[[Constants], Floats], measured: Floats) -> Calibration:
    """Maximum a posteriori constants under which `seconds(constants)` comes nearest to the measured times, (n,) each.

    Log residuals are weighed by soft L1, so that a few broken runs do not count; priors are log-normal. Covariance by
    Gauss-Newton. Without runs the priors come back. Source: Triggs et al. 2000, "Bundle adjustment", section 4 (robust
    cost with priors as further residuals). Raises: InvalidInputError.
    """
    if not np.all(np.isfinite(measured) & (measured > 0)):
        raise InvalidInputError("measured seconds hold a number that is not positive, expected positive numbers")
    calibration = prior()
    if len(measured) == 0:
        return calibration
    for _ in range(REFITS):
        refined = _fit(seconds, measured, calibration)
        settled = abs(np.log(refined.residual_spread / calibration.residual_spread)) < SETTLED
        calibration = refined
        if settled:
            break
    return calibration


def _fit(seconds: Callable[[Constants], Floats], measured: Floats, start: Calibration) -> Calibration:
    from scipy.optimize import least_squares  # noqa: PLC0415 - heavy, and needed only to learn

    believed = prior()
    moving = _moving(seconds, start.logs)
    centre, deviations = believed.logs[moving], np.sqrt(np.diag(believed.log_covariance))[moving]

    def residuals(values: Floats) -> Floats:
        logs = _with(start.logs, moving, values)
        misses = np.log(seconds(Constants.of_logs(logs)) / measured) / start.residual_spread
        return np.concatenate([misses, (values - centre) / deviations])

    bounds = (centre - REACH * deviations, centre + REACH * deviations)
    solved = least_squares(
        residuals,
        np.clip(start.logs[moving], *bounds),
        bounds=bounds,
        loss=_soft_l1_on_first(len(measured)),
        diff_step=DIFFERENCE,
        ftol=TOLERANCE,
        xtol=TOLERANCE,
        max_nfev=EVALUATIONS_MAX,
    )
    covariance = believed.log_covariance.copy()
    covariance[np.ix_(moving, moving)] = np.linalg.inv(solved.jac.T @ solved.jac)
    return Calibration(
        logs=_with(start.logs, moving, np.asarray(solved.x, np.float64)),
        log_covariance=covariance,
        residual_spread=_spread(solved.fun[: len(measured)] * start.residual_spread),
    )


def _moving(seconds: Callable[[Constants], Floats], logs: Floats) -> NDArray[np.intp]:
    """Places of the constants that change any of the times; nothing can be learned about the others."""
    there = seconds(Constants.of_logs(logs))
    steps = np.diag(np.full(len(logs), MOVE))
    return np.flatnonzero([np.any(seconds(Constants.of_logs(logs + step)) != there) for step in steps])


def _with(logs: Floats, places: NDArray[np.intp], values: Floats) -> Floats:
    changed = logs.copy()
    changed[places] = values
    return changed


def _soft_l1_on_first(n_measured: int) -> Callable[[Floats], NDArray[Any]]:
    """Return SciPy's soft L1 for measured residuals, and squares for the priors, which are no outliers."""

    def loss(squares: Floats) -> NDArray[Any]:
        grown = np.sqrt(1 + squares)
        robust = np.stack([2 * (grown - 1), 1 / grown, -0.5 / grown**3])
        plain = np.stack([squares, np.ones_like(squares), np.zeros_like(squares)])
        return np.where(np.arange(len(squares)) < n_measured, robust, plain)

    return loss


def _spread(misses: Floats) -> float:
    """Return a standard deviation that a fifth of broken runs cannot raise, drawn to SPREAD_START by two runs.

    From the 0.8 quantile of absolute misses, 1.28 deviations of a normal distribution: residual tails are heavier, and
    bands from the median would be too narrow.
    """
    robust = float(np.quantile(np.abs(misses), 0.8) / NormalDist().inv_cdf(0.9))
    n = len(misses)
    return max(float(np.sqrt((n * robust**2 + 2 * SPREAD_START**2) / (n + 2))), SPREAD_MIN)
