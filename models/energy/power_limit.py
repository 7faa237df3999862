"""The effect of a power limit on a device's speed and draw."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.optimize import least_squares

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats

LIMIT_NAMES = (  # what people call the limit of a device's power, in watts, among a run's parameters
    *("power_limit", "power_limit_watts", "power_cap", "power_cap_watts"),
    *("gpu_power_limit", "gpu_power_limit_watts", "limit_watts"),
)
ROWS_MIN = 3
NOISE_DEVIATION = 0.05  # of logarithms
FLOOR_SHARPNESS = 6.0
LOG_HEADROOM_MIN = -2.5  # prior of the lowest clock: 8 % of the demand
# Normal priors (mean, deviation): below the knee speed ~ power^0.75, as between a clock whose voltage falls with it
# and one at the lowest voltage.
STEEPNESS_PRIOR, KNEE_PRIOR, SHARPNESS_PRIOR = (0.75, 0.15), (-0.3, 0.3), (5.0, 3.0)
DRAW_KNEE_PRIOR, DRAW_SHARPNESS_PRIOR = (0.0, 0.2), (4.0, 2.0)


@dataclass(frozen=True)
class PowerLimitCurve:
    """Slowdown and draw against log headroom = log((limit - static power) / (dynamic power without a limit)).

    Devices are alike in these terms: below headroom 1 the clock falls, down to the lowest clock (`log_headroom_min`),
    where the slowdown ends and the draw stays above the limit.
    """

    steepness: float = STEEPNESS_PRIOR[0]
    knee: float = KNEE_PRIOR[0]
    sharpness: float = SHARPNESS_PRIOR[0]
    draw_knee: float = DRAW_KNEE_PRIOR[0]
    draw_sharpness: float = DRAW_SHARPNESS_PRIOR[0]
    log_headroom_min: float = LOG_HEADROOM_MIN

    @classmethod
    def of(cls, log_headrooms: Floats, log_slowdowns: Floats, log_draws: Floats) -> Self:
        """Learns from (n,) rows; log_draws: dynamic power over that without a limit. Raises: InvalidInputError."""
        if len(log_headrooms) < ROWS_MIN:
            raise InvalidInputError(f"{len(log_headrooms)} rows under a power limit, expected {ROWS_MIN} at least")
        priors = np.array([STEEPNESS_PRIOR, KNEE_PRIOR, SHARPNESS_PRIOR, DRAW_KNEE_PRIOR, DRAW_SHARPNESS_PRIOR])

        def errors(theta: Floats) -> Floats:
            curve = cls(*map(float, theta))
            return np.concatenate(
                [
                    (curve.log_slowdown(log_headrooms) - log_slowdowns) / NOISE_DEVIATION,
                    (curve.log_draw(log_headrooms) - log_draws) / NOISE_DEVIATION,
                    (theta - priors[:, 0]) / priors[:, 1],
                ]
            )

        bounds = ([0.1, -2.0, 1.0, -1.0, 1.0], [1.5, 1.0, 20.0, 1.0, 30.0])
        fitted = least_squares(errors, priors[:, 0], bounds=bounds, loss="soft_l1")
        return cls(*map(float, fitted.x))

    def of_device(self, steepness_ratio: float, log_headroom_min: float) -> "PowerLimitCurve":
        """The curve of a device with another steepness and another lowest clock."""
        return replace(self, steepness=self.steepness * steepness_ratio, log_headroom_min=log_headroom_min)

    def log_slowdown(self, log_headrooms: Floats) -> Floats:
        """Log of seconds over seconds without a limit, shape (n,)."""
        below = self.sharpness * (self.knee - self._used(log_headrooms))
        return np.asarray(self.steepness / self.sharpness * np.logaddexp(0, below), dtype=np.float64)

    def log_draw(self, log_headrooms: Floats) -> Floats:
        """Log of dynamic power over that without a limit, shape (n,)."""
        above = self.draw_sharpness * (self._used(log_headrooms) - self.draw_knee)
        return np.asarray(-np.logaddexp(0, -above) / self.draw_sharpness, dtype=np.float64)

    def _used(self, log_headrooms: Floats) -> Floats:
        """Log headroom (n,), floored smoothly at the lowest clock."""
        above = FLOOR_SHARPNESS * (log_headrooms - self.log_headroom_min)
        return np.asarray(self.log_headroom_min + np.logaddexp(0, above) / FLOOR_SHARPNESS, dtype=np.float64)


def limit_name(parameters: Iterable[str]) -> str | None:
    """Return the name of the parameter that limits a device's power; None without one, or with several."""
    names = [name for name in parameters if name.lower().replace("-", "_") in LIMIT_NAMES]
    return names[0] if len(names) == 1 else None
