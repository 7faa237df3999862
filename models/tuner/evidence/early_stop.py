"""The chance of a running trial to become the best, by its steps so far.

The level of its steps, the median after warm-up, may still change: by the sampling error of so few steps, and as
machines drift. How far levels of the lab's runs moved after so many steps has tails as heavy as Student's t with one
degree of freedom (a neighbour comes or goes); its scale was fitted to runs of `train` and `calibrate`. Where the latest
steps are quicker than those before, they count: a disturbance may have ended.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.store.features import WARM_UP_STEPS

DRIFT = 0.03  # scale of the change of a level's logarithm from its first steps to the whole run
MEDIAN_ERROR = 1.2533 * 1.4826  # standard error of a median x root of the count, from median absolute deviations
LATEST = 1 / 3  # of the steps
CHANCES = (np.arange(2000) + 0.5) / 2000
SHIFTS = np.tan(np.pi * (CHANCES - 0.5))  # Student's t with one degree of freedom, at these chances


@dataclass(frozen=True)
class Incumbent:
    """The best trial so far.

    Args:
        objective: Lower is better.
        seconds: Of all its steps together; None if unknown.

    Raises:
        InvalidInputError: For numbers that are not finite.
    """

    objective: float
    seconds: float | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.objective):
            raise InvalidInputError(f"the incumbent's objective is {self.objective}, expected a finite number")
        if self.seconds is not None and not 0 < self.seconds < math.inf:
            raise InvalidInputError(f"the incumbent's seconds are {self.seconds}, expected a positive number or none")


@dataclass(frozen=True)
class Patience:
    """The conditions for giving a trial up.

    Args:
        fewest_steps: After warm-up, before which no trial is given up.
        least_chance: To beat the incumbent, below which one is given up.
        most_times: The incumbent's seconds so many times, beyond which one is given up whose steps will take longer
            even if they get as quick as they well may.
        warm_up_steps: That do not count.

    Raises:
        InvalidInputError: For numbers out of bounds.
    """

    fewest_steps: int = 8
    least_chance: float = 0.02
    most_times: float = 2.5
    warm_up_steps: int = WARM_UP_STEPS

    def __post_init__(self) -> None:
        if self.fewest_steps < 3 or self.warm_up_steps < 0:
            raise InvalidInputError(
                f"fewest_steps is {self.fewest_steps} after {self.warm_up_steps}, expected 3 or more after 0 or more"
            )
        if not 0 < self.least_chance < 0.5:
            raise InvalidInputError(f"least_chance is {self.least_chance}, expected a number between 0 and 0.5")
        if not self.most_times > 1:
            raise InvalidInputError(f"most_times is {self.most_times}, expected more than 1")


@dataclass(frozen=True)
class Stop:
    """A reason to stop a trial.

    Args:
        steps: How many it has made.
        chance: To beat the incumbent.
        objective: Projected; `low` and `high` are the ends of its 90 % interval.
        reason: In words.
    """

    steps: int
    chance: float
    objective: float
    low: float
    high: float
    reason: str


def stop_of(
    step_seconds: Floats,
    objective_at: Callable[[Floats], Floats],
    incumbent: Incumbent,
    *,
    total_steps: int | None = None,
    patience: Patience = Patience(),
) -> Stop | None:
    """Return the stop of a trial after these steps, the slowest rank's seconds, shape (n_steps,); None to go on.

    `objective_at` maps typical seconds of a step, shape (n,), to the objective that the trial would then have, NaN
    where it would have none. Raises: InvalidInputError.
    """
    _check(step_seconds, total_steps)
    seen = step_seconds[patience.warm_up_steps :]
    if len(seen) < patience.fewest_steps or len(step_seconds) == total_steps:
        return None
    levels = levels_of(seen, None if total_steps is None else total_steps - patience.warm_up_steps)
    objectives = np.asarray(objective_at(levels))
    if np.isnan(objectives).any():
        return None
    chance = float(np.mean(objectives < incumbent.objective))
    middle, low, high = np.quantile(objectives, (0.5, 0.05, 0.95)).tolist()
    quick = float(np.quantile(levels, 0.05))
    seconds = None if total_steps is None else float(step_seconds.sum()) + (total_steps - len(step_seconds)) * quick
    reason = _hopeless(chance, patience) or _too_long(seconds, incumbent, patience)
    return Stop(len(step_seconds), chance, middle, low, high, reason) if reason else None


def levels_of(seen: Floats, total: int | None) -> Floats:
    """Equally likely medians of all steps, given those seen, shape (len(CHANCES),), rising; `total` None is many."""
    logs = np.log(seen)
    latest = logs[-max(3, round(LATEST * len(logs))) :]
    level = min(float(np.median(logs)), float(np.median(latest)))
    error = MEDIAN_ERROR * float(np.median(np.abs(logs - np.median(logs)))) / math.sqrt(len(logs))
    left = 1.0 if total is None else max(1 - len(logs) / total, 0.0)
    scale = math.sqrt((error**2 + DRIFT**2) * left)
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(np.clip(level + scale * SHIFTS, -700.0, 700.0)))


def _check(step_seconds: Floats, total_steps: int | None) -> None:
    if step_seconds.ndim != 1 or not np.all((step_seconds > 0) & (step_seconds < np.inf)):
        raise InvalidInputError(f"step_seconds are {step_seconds}, expected positive finite numbers in one row")
    if total_steps is not None and total_steps < len(step_seconds):
        raise InvalidInputError(f"total_steps is {total_steps}, expected {len(step_seconds)} or more: so many are done")


def _hopeless(chance: float, patience: Patience) -> str:
    if chance >= patience.least_chance:
        return ""
    return f"the chance to beat the best trial is {chance:.1%}, below {patience.least_chance:.0%}"


def _too_long(seconds: float | None, incumbent: Incumbent, patience: Patience) -> str:
    if incumbent.seconds is None or seconds is None or seconds <= patience.most_times * incumbent.seconds:
        return ""
    times = f"its steps will take {seconds / incumbent.seconds:.2g} times the incumbent's {incumbent.seconds:.4g} s"
    return f"{times}, expected at most {patience.most_times:g} times"
