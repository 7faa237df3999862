"""Scores of a predicted distribution against the truth."""

from collections.abc import Sequence

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction


def pinball_loss(prediction: Prediction, y: Floats) -> float:
    """Mean pinball loss over rows and levels, in the unit of y; lower is better, 0 is perfect.

    Twice its mean over many levels is the continuous ranked probability score. Raises: InvalidInputError.
    Source: Koenker and Bassett 1978.
    """
    return mean_pinball(prediction.values, _matching(prediction, y), prediction.levels)


def mean_pinball(quantiles: Floats, y: Floats, levels: Sequence[float]) -> float:
    """Return the mean pinball loss of quantiles (n_rows, n_levels) against y (n_rows,)."""
    return float(np.mean(pinball(y[:, None] - quantiles, levels)))


def pinball(errors: Floats, levels: Sequence[float]) -> Floats:
    """The loss of each error, truth minus quantile, shape (..., n_levels), in its unit; 0 is perfect."""
    at = np.array(levels)
    losses: Floats = np.maximum(at * errors, (at - 1) * errors)
    return losses


def coverage(prediction: Prediction, y: Floats, *, low: float, high: float) -> float:
    """Share of rows between two levels' quantiles, ends included. Raises: InvalidInputError."""
    y = _matching(prediction, y)
    return float(np.mean((prediction.at(low) <= y) & (y <= prediction.at(high))))


def skill(loss: float, baseline_loss: float) -> float:
    """Return 1 - loss / baseline loss: 1 is perfect, 0 no better than the baseline, negative worse.

    Raises: InvalidInputError when the baseline is perfect, for then there is nothing to win.
    """
    if not baseline_loss > 0:
        raise InvalidInputError(f"baseline loss is {baseline_loss}, expected a positive number to compare with")
    return 1 - loss / baseline_loss


def _matching(prediction: Prediction, y: Floats) -> Floats:
    if y.shape != (len(prediction.values),) or y.size == 0:
        raise InvalidInputError(f"y has shape {y.shape}, expected ({len(prediction.values)},) and at least one row")
    return y
