"""Predictions are numbers, or refused."""

import math

import numpy as np
import pytest

from crosswind.data.schema.answers.predictions import Accuracy, PredictionBasis, Quantile, RunPrediction
from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.next_run.model import Batch


@pytest.mark.parametrize("seconds", [math.inf, math.nan, -math.inf])
def test_a_prediction_that_is_no_number_is_refused_by_the_size_that_was_asked_for(seconds: float) -> None:
    worth = Accuracy()
    quantiles = (Quantile(0.1, 1.0), Quantile(0.9, seconds))
    with pytest.raises(InvalidInputError, match="world_size 65537: no finite run_seconds follows"):
        RunPrediction(
            *("gpt", "lab", 65537, "run_seconds", quantiles),
            *(PredictionBasis.WORKLOAD, None, True, (), 0, 8, worth, ()),
        )
    with pytest.raises(InvalidInputError, match="run 1 of 2: no finite run_seconds follows"):
        Batch("run_seconds", (0.5,), np.array([[1.0], [seconds]]), (PredictionBasis.WORKLOAD,) * 2, (True, True))
