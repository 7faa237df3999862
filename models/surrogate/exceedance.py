"""The chance that a run takes longer than a limit, from its predicted quantiles, and its inverse."""

from collections.abc import Sequence

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction

LOG_WIDTH_MIN = 1e-9


def exceedance(prediction: Prediction, limits_seconds: Floats | float) -> Floats:
    """P(T > limit) of each row, shape (n_rows,); one limit for all rows, or one a row.

    Between two levels it is linear in log time. Beyond the outermost ones the tail is exponential in log time, with the
    width of the outermost two levels, so a far limit is unlikely but never impossible. Raises: InvalidInputError.
    """
    limits = np.broadcast_to(np.asarray(limits_seconds, dtype=np.float64), (len(prediction.values),))
    if not np.all(limits > 0):
        raise InvalidInputError(f"limits_seconds holds {limits[~(limits > 0)][0]}, expected positive numbers")
    rows = zip(_logs(prediction), np.log(limits), strict=True)
    return np.array([_above(np.array(prediction.levels), quantiles, limit) for quantiles, limit in rows])


def seconds_at(prediction: Prediction, levels: Sequence[float]) -> Floats:
    """The times that are exceeded with probabilities 1 - level, shape (n_rows, n_levels): the inverse of `exceedance`.

    Raises: InvalidInputError.
    """
    if not all(0 < level < 1 for level in levels):
        raise InvalidInputError(f"levels {list(levels)}, expected probabilities between 0 and 1")
    stated = np.array(prediction.levels)
    return np.exp([[_reached(stated, quantiles, level) for level in levels] for quantiles in _logs(prediction)])


def _logs(prediction: Prediction) -> Floats:
    if len(prediction.levels) < 2:
        raise InvalidInputError(f"a prediction at {len(prediction.levels)} levels, expected two at least")
    if not np.all(prediction.values > 0):
        raise InvalidInputError("the prediction holds a quantile that is not positive, expected seconds")
    logs: Floats = np.log(prediction.values)
    return logs


def _reached(levels: Floats, quantiles: Floats, level: float) -> float:
    if level > levels[-1]:
        width = _width(1 - levels[-2], 1 - levels[-1], quantiles[-2:])
        return float(quantiles[-1] + width * np.log((1 - levels[-1]) / (1 - level)))
    if level < levels[0]:
        return float(quantiles[0] - _width(levels[1], levels[0], quantiles[:2]) * np.log(levels[0] / level))
    return float(np.interp(level, levels, quantiles))


def _above(levels: Floats, quantiles: Floats, limit: float) -> float:
    if limit > quantiles[-1]:
        return float((1 - levels[-1]) * _fading(1 - levels[-2], 1 - levels[-1], quantiles[-2:], limit - quantiles[-1]))
    if limit < quantiles[0]:
        return float(1 - levels[0] * _fading(levels[1], levels[0], quantiles[:2], quantiles[0] - limit))
    return float(1 - np.interp(limit, quantiles, levels))


def _fading(inner: float, outer: float, quantiles: Floats, distance: float) -> float:
    """Return the share of the outer level's probability that lies further than `distance` beyond it."""
    return float(np.exp(-distance / _width(inner, outer, quantiles)))


def _width(inner: float, outer: float, quantiles: Floats) -> float:
    """Return the distance in log time over which the probability of a tail falls to 1/e."""
    return max(float(quantiles[1] - quantiles[0]) / float(np.log(inner / outer)), LOG_WIDTH_MIN)
