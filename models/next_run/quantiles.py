"""Quantiles of an answer, as a distribution and back."""

from collections.abc import Sequence

import numpy as np

from crosswind.data.schema.answers.predictions import Quantile, RunPrediction
from crosswind.data.schema.prediction import Prediction


def quantiles(prediction: Prediction) -> tuple[Quantile, ...]:
    """The first row of a distribution."""
    return tuple(map(Quantile, prediction.levels, map(float, prediction.values[0])))


def distribution(answer: RunPrediction) -> Prediction:
    """The quantiles of an answer as a distribution of one row."""
    return distribution_of(answer.quantiles)


def distribution_of(stated: Sequence[Quantile]) -> Prediction:
    """The same of quantiles, in the order of their levels."""
    levels = tuple(quantile.level for quantile in stated)
    return Prediction(levels, np.array([[quantile.seconds for quantile in stated]]))
