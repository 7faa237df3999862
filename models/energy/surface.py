"""A logarithm over several numbers, between and beyond the points where it was measured."""

from dataclasses import dataclass

import numpy as np

from crosswind.data.schema.prediction import Floats

SLOPE_DEVIATION = 1.0  # of the exponent of a number
NOISE_DEVIATION = 0.05  # of the logarithm
RESIDUAL_LENGTH = 1.0  # of a logarithm: over so much, deviations from the law of powers are alike


@dataclass(frozen=True)
class Surface:
    """A law of powers plus its deviations at the measured points, which are kept between and fade beyond them.

    With one coordinate it is the straight line between the points, and beyond them the value of the nearest.
    points: (n, n_coordinates), logarithms, each once; values: (n,).
    """

    points: Floats
    values: Floats

    def logs(self, points: Floats) -> Floats:
        """Values at points (n_asked, n_coordinates), (n_asked,); exact at measured ones."""
        if self.points.shape[1] == 1:
            order = np.argsort(self.points[:, 0])
            return np.asarray(np.interp(points[:, 0], self.points[order, 0], self.values[order]), dtype=np.float64)
        centre, level = self.points.mean(axis=0), float(self.values.mean())
        design = self.points - centre
        precision = design.T @ design + (NOISE_DEVIATION / SLOPE_DEVIATION) ** 2 * np.eye(design.shape[1])
        slopes = np.linalg.solve(precision, design.T @ (self.values - level))
        left = self.values - level - design @ slopes
        weights = np.linalg.solve(_likeness(self.points, self.points) + 1e-9 * np.eye(len(left)), left)
        return np.asarray(level + (points - centre) @ slopes + _likeness(points, self.points) @ weights)


def _likeness(left: Floats, right: Floats) -> Floats:
    """Return exp(-distance), (n_left, n_right): of a process that passes through all points."""
    gaps = left[:, None, :] - right[None, :, :]
    return np.asarray(np.exp(-np.sqrt(np.sum(gaps**2, axis=2)) / RESIDUAL_LENGTH), dtype=np.float64)
