"""The shortest time limit that a run keeps with a given confidence."""

import math
import re

from crosswind.data.schema.answers.advice import Walltime
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Prediction

MINUTE = 60
LONGEST_SECONDS = 2**32 * MINUTE  # Slurm counts minutes in 32 bits
MINUTES = re.compile(r"(?P<m>\d+)(:(?P<s>\d+))?", re.ASCII)
HOURS = re.compile(r"(?P<h>\d+):(?P<m>\d+):(?P<s>\d+)", re.ASCII)
DAYS = re.compile(r"(?P<d>\d+)-(?P<h>\d+)(:(?P<m>\d+)(:(?P<s>\d+))?)?", re.ASCII)
IN_SECONDS = {"d": 86_400, "h": 3_600, "m": MINUTE, "s": 1}


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


def slurm_seconds(text: str) -> int:
    """Return the seconds of `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M` or `D-H:M:S`. Source: sbatch(1), --time.

    Raises: InvalidInputError.
    """
    match = next((match for form in (MINUTES, HOURS, DAYS) if (match := form.fullmatch(text))), None)
    seconds = sum(IN_SECONDS[unit] * int(count[:12]) for unit, count in match.groupdict("0").items()) if match else 0
    if not 0 < seconds < LONGEST_SECONDS:
        raise InvalidInputError(
            f"limit {text[:40]!r}: expected a time limit such as 90 (minutes), 02:30:00 or 1-12:00:00"
        )
    return seconds
