"""Seconds of an epoch against the batch: bound by launches where it is small, by computing where it is large."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.optimize import least_squares

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats

SHARPNESS = 2.0  # of the corner between the two; launches overlap computing in part
SLOPE_DEVIATION = 0.3  # of log seconds over log batch where computing decides: 0 when every sample costs the same
NOISE_DEVIATION = 0.05  # of log seconds


@dataclass(frozen=True)
class BatchCurve:
    """log seconds = a smooth maximum of launch - log batch and compute + slope * log batch, plus measured deviations.

    Between measured batches the deviation is interpolated, beyond them it is that of the nearest.
    """

    launch: float
    compute: float
    slope: float
    log_batches: Floats  # (n,), rising
    deviations: Floats  # (n,), log seconds

    @classmethod
    def of(cls, log_batches: Floats, log_seconds: Floats) -> Self:
        """Learns from (n,) batches, one at least. Raises: InvalidInputError."""
        if len(log_batches) == 0 or log_batches.shape != log_seconds.shape:
            raise InvalidInputError(
                f"log_batches has shape {log_batches.shape} and log_seconds {log_seconds.shape}, expected one and the "
                "same, and a row at least"
            )
        order = np.argsort(log_batches)
        batches, seconds = log_batches[order], log_seconds[order]

        def errors(theta: Floats) -> Floats:
            short = (_smooth(theta, batches) - seconds) / NOISE_DEVIATION
            return np.append(short, theta[2] / SLOPE_DEVIATION)

        start = np.array([seconds.min() + batches.min(), seconds.min(), 0.0])
        theta = least_squares(errors, start, loss="soft_l1").x
        launch, compute, slope = map(float, theta)
        return cls(launch, compute, slope, batches, seconds - _smooth(theta, batches))

    def log_seconds(self, log_batches: Floats) -> Floats:
        """Log seconds at any batches; exact at measured ones."""
        theta = np.array([self.launch, self.compute, self.slope])
        return _smooth(theta, log_batches) + np.interp(log_batches, self.log_batches, self.deviations)

    def logs(self, points: Floats) -> Floats:
        """Log seconds at points (n, 1), the logarithms of batches, (n,)."""
        return self.log_seconds(points[:, 0])


def _smooth(theta: Floats, log_batches: Floats) -> Floats:
    launches, computing = theta[0] - log_batches, theta[1] + theta[2] * log_batches
    return np.asarray(np.logaddexp(SHARPNESS * launches, SHARPNESS * computing) / SHARPNESS, dtype=np.float64)
