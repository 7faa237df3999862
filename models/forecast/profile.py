"""Profile of a cohort's calm runs: the time of each step when little disturbs it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats

CALM_SHARE = 0.4  # of a cohort's runs, the fastest, with which the others are compared
RUNS_MIN = 3  # in a cohort, below which nothing is expected of a run of it
DEVIATIONS_FOR_SHAPE = 2.0  # standard errors from which a step counts as slow by its place
PERIODS_MIN = 3  # recurrences from which a slow step counts as periodic
SLOW_RATIO = 1.3  # of the median step, from which a step may be one of the periodic slow ones


@dataclass(frozen=True)
class StepProfile:
    """Step j of a calm run takes `seconds * shape[j]` on average, and `usual * shape[j]` most often.

    `shape` is 1 for an ordinary step; it includes the warm-up, and recurring slow steps such as checkpoints.
    `usual` is a geometric mean: a few very slow steps raise `seconds` more.
    """

    seconds: float
    usual: float
    shape: Floats  # (n_steps,)
    repeat: tuple[int, int, float] | None = None  # as `periodic`, for steps beyond the shape

    @classmethod
    def of(cls, runs: Sequence[Floats], shape: Floats | None = None) -> Self:
        """Make it of the step seconds of earlier runs, (n_steps,) each, positive. Raises: InvalidInputError."""
        if not runs:
            raise InvalidInputError("a profile of 0 runs, expected at least one")
        for number, run in enumerate(runs):
            check_steps(run, f"run {number}")
        pattern = shape_of(runs) if shape is None else shape
        return cls.at_levels(np.array([levels_of(run, pattern) for run in runs]), pattern)

    @classmethod
    def at_levels(cls, levels: Floats, shape: Floats) -> Self:
        """Make it of the levels of earlier runs, shape (n_runs, 2), as `levels_of`."""
        seconds, logs = levels[np.argsort(levels[:, 0])[calm(len(levels))]].mean(axis=0)
        return cls(float(seconds), float(np.exp(logs)), shape, periodic(shape))

    def between(self, first: int, end: int) -> Floats:
        """The shape of the steps from `first` up to before `end`; beyond the longest run, periodic steps continue."""
        beyond = np.arange(max(first, len(self.shape)), max(end, len(self.shape), first))
        return np.concatenate([self.shape[first:end], _continued(beyond, self.repeat)])

    def sum_between(self, first: int, end: int) -> float:
        """The sum of `between`, in constant time for a far `end`."""
        begin = max(first, len(self.shape))
        inside = float(self.shape[first:end].sum())
        if end <= begin or self.repeat is None:
            return inside + max(end - begin, 0)
        period, phase, ratio = self.repeat
        slow = (end - phase - 1) // period - (begin - phase - 1) // period
        return inside + (end - begin) + slow * (ratio - 1)


def levels_of(seconds: Floats, shape: Floats) -> tuple[float, float]:
    """A run's seconds per step of shape 1, and the mean logarithm of them."""
    there = lengthened(shape, len(seconds))
    return float(seconds.sum() / there.sum()), float(np.mean(np.log(seconds / there)))


def calm(n_runs: int) -> slice:
    """Return the slice of the calm ones among `n_runs` in the order of their time."""
    return slice(0, max(1, round(CALM_SHARE * n_runs)))


def shape_of(runs: Sequence[Floats]) -> Floats:
    """Return ratios of step times to their run's median, (n_steps,): the median over runs, 1 where they disagree."""
    longest = max(len(run) for run in runs)
    ratios = np.full((len(runs), longest), np.nan)
    for row, run in zip(ratios, runs, strict=True):
        row[: len(run)] = np.log(run / np.median(run))
    there = np.sum(~np.isnan(ratios), axis=0)
    middle = np.nanmedian(ratios, axis=0)
    spread = 1.4826 * np.nanmedian(np.abs(ratios - middle), axis=0)
    doubt = 1.25 * spread / np.sqrt(there)  # the standard error of a median of normal values
    agreed = (there >= RUNS_MIN) & (np.abs(middle) > DEVIATIONS_FOR_SHAPE * doubt)
    shape: Floats = np.exp(np.where(agreed, middle, 0.0))
    return shape


def lengthened(shape: Floats, n_steps: int) -> Floats:
    """The shape for `n_steps` steps: cut off, or continued by its period, or by ordinary steps where it has none."""
    if n_steps <= len(shape):
        return shape[:n_steps]
    return np.concatenate([shape, _continued(np.arange(len(shape), n_steps), periodic(shape))])


def _continued(steps: NDArray[np.int64], repeat: tuple[int, int, float] | None) -> Floats:
    period, phase, ratio = repeat or (1, 0, 1.0)
    return np.where(steps % period == phase, ratio, 1.0)


def periodic(values: Floats) -> tuple[int, int, float] | None:
    """Return the period of recurring slow steps, their remainder, and their ratio to the median; None without any.

    Slow steps take SLOW_RATIO times the median. The period with most slow places is taken, of which at most one in ten
    is not slow.
    """
    median = float(np.median(values))
    slow = np.flatnonzero(values > SLOW_RATIO * median)
    if len(slow) < PERIODS_MIN:
        return None
    best: tuple[int, int, float] | None = None
    most = 0
    for period in {int(gap) for gap in np.diff(slow) if gap > 1}:
        phase = int(np.bincount(slow % period).argmax())
        places = np.arange(phase, len(values), period)
        hits = int(np.isin(places, slow).sum())
        if hits >= max(PERIODS_MIN, 0.9 * len(places)) and hits > most:
            best, most = (period, phase, float(np.median(values[places])) / median), hits
    return best


def check_steps(seconds: Floats, of: str) -> None:
    """Refuses what are no step times. Raises: InvalidInputError."""
    if seconds.ndim != 1 or len(seconds) == 0:
        raise InvalidInputError(f"steps of {of} have shape {seconds.shape}, expected (n_steps,), one at least")
    good = np.isfinite(seconds) & (seconds > 0)
    if not good.all():
        step = int(np.argmin(good))
        raise InvalidInputError(f"step {step} of {of} took {seconds[step]} seconds, expected a positive number")
