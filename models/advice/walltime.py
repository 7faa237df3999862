"""The shortest time limit that a run keeps with a given confidence."""

import math

from crosswind.data.schema.answers.advice import Walltime
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Prediction

MINUTE = 60
LONGEST_SECONDS = 2**32 * MINUTE  # Slurm counts minutes in 32 bits


def walltime(prediction: Prediction, confidence: float, *, startup_seconds: float = 0.0) -> Walltime:
    """The limit for the one run that `prediction` is of; `startup_seconds` are those before it begins.

    Raises: InvalidInputError for a confidence that the distribution does not tell, or a limit beyond Slurm's.
    """
    highest = prediction.levels[-1]
    if not 0.5 <= confidence <= highest:
        raise InvalidInputError(f"confidence {confidence}: expected 0.5 to {highest}")
    if not 0 <= startup_seconds < math.inf:
        raise InvalidInputError(f"startup_seconds {startup_seconds}: expected 0 or more")
    [quantile] = prediction.at(confidence)
    minutes = max(1, math.ceil((quantile + startup_seconds) / MINUTE))
    if not minutes * MINUTE < LONGEST_SECONDS:
        raise InvalidInputError(f"limit of {minutes} min: Slurm takes fewer than {LONGEST_SECONDS // MINUTE}")
    return Walltime(minutes * MINUTE, confidence, float(quantile), f"#SBATCH --time={slurm_time(minutes * MINUTE)}")


def slurm_time(seconds: int) -> str:
    """`[D-]HH:MM:SS`. Source: sbatch(1), --time."""
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    clock = f"{hour:02d}:{minute:02d}:{second:02d}"
    return f"{days}-{clock}" if days else clock
