import math

import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Prediction
from crosswind.models.advice.walltime import slurm_time, walltime

HOUR_OR_TWO = Prediction((0.5, 0.9, 0.99), np.array([[3600.0, 5400.0, 7200.5]]))


def test_the_limit_is_the_quantile_rounded_up_to_the_minute() -> None:
    assert walltime(HOUR_OR_TWO, 0.9).seconds == 5400
    assert walltime(HOUR_OR_TWO, 0.99).seconds == 7260
    assert walltime(HOUR_OR_TWO, 0.99).directive == "#SBATCH --time=02:01:00"


def test_what_comes_before_the_run_is_added() -> None:
    assert walltime(HOUR_OR_TWO, 0.5, startup_seconds=61).seconds == 3720


def test_a_run_of_no_time_still_needs_a_minute() -> None:
    assert walltime(Prediction((0.5, 0.9), np.array([[0.001, 0.002]])), 0.9).seconds == 60


@pytest.mark.parametrize("confidence", [0.49, 0.995, 1.0, math.nan, -1])
def test_a_confidence_that_the_distribution_does_not_tell_is_refused(confidence: float) -> None:
    with pytest.raises(InvalidInputError, match=r"confidence .*: expected 0.5 to 0.99"):
        walltime(HOUR_OR_TWO, confidence)


@pytest.mark.parametrize("startup_seconds", [-1.0, math.inf, math.nan])
def test_an_impossible_start_is_refused(startup_seconds: float) -> None:
    with pytest.raises(InvalidInputError, match=r"startup_seconds .*: expected 0 or more"):
        walltime(HOUR_OR_TWO, 0.9, startup_seconds=startup_seconds)


def test_a_limit_that_slurm_cannot_count_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="Slurm takes fewer than 4294967296"):
        walltime(Prediction((0.5, 0.9), np.array([[1e12, 1e12]])), 0.9)


@pytest.mark.parametrize(
    ("seconds", "text"), [(60, "00:01:00"), (86399, "23:59:59"), (86400, "1-00:00:00"), (10**6, "11-13:46:40")]
)
def test_slurm_reads_days_and_clock(seconds: int, text: str) -> None:
    assert slurm_time(seconds) == text
