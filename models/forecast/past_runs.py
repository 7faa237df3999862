"""Earlier runs for comparison with a running one: their progress at fractions of their steps, and their rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.forecast.pace import paces
from crosswind.models.forecast.profile import RUNS_MIN, StepProfile, calm, check_steps, lengthened, levels_of, shape_of

STEPS_MIN = 10


@dataclass(frozen=True)
class PastRun:
    """A completed run: seconds of its steps, (n_steps,), and signals: other numbers of each step that may predict it.

    `prior` holds the quantiles of the total seconds, at LEVELS, that were predicted before it started; empty if none.
    """

    cohort: str
    seconds: Floats
    signals: Mapping[str, Floats] = field(default_factory=dict)
    prior: tuple[float, ...] = ()


@dataclass(frozen=True)
class Expected:
    """Expectations for a run of a cohort: its profile, and mean signals of a calm run at every fraction."""

    profile: StepProfile
    signals: Floats  # (n_fractions, n_signals)


@dataclass(frozen=True)
class Progress:
    """Progress of n past runs at every fraction; ratios are logarithms. Shapes are (n_runs, n_fractions).

    `level`, `recent` and `rest` compare the steps seen, the newest and the remaining steps with the other runs of the
    cohort; they are 0 unless `is_known`. The `own_` columns compare a run with itself alone.
    """

    is_known: NDArray[np.bool_]  # (n_runs,)
    level: Floats
    recent: Floats
    rest: Floats
    signals: Floats  # (n_runs, n_fractions, n_signals), differences from a calm run
    own_recent: Floats  # newest steps to all steps seen
    own_roughness: Floats
    own_rest: Floats  # mean step still to come to mean step seen
    seen_seconds: Floats
    rest_seconds: Floats


def checked(runs: Sequence[PastRun]) -> tuple[str, ...]:
    """Check runs, and return the names of the signals that all of them have. Raises: InvalidInputError."""
    if not runs:
        raise InvalidInputError("0 earlier runs, expected at least one")
    for number, run in enumerate(runs):
        check_steps(run.seconds, f"earlier run {number}")
        if len(run.seconds) < STEPS_MIN:
            raise InvalidInputError(f"earlier run {number} has {len(run.seconds)} steps, expected at least {STEPS_MIN}")
        for name, values in run.signals.items():
            if values.shape != run.seconds.shape or not np.all(np.isfinite(values)):
                raise InvalidInputError(
                    f"signal {name} of earlier run {number} has shape {values.shape}, expected a finite number for "
                    f"each of its {len(run.seconds)} steps"
                )
    return tuple(sorted(set(runs[0].signals).intersection(*(run.signals for run in runs))))


def expectations(runs: Sequence[PastRun], names: Sequence[str], fractions: Floats) -> dict[str, Expected]:
    """Expectations by cohort, of those with RUNS_MIN runs or more."""
    expected = {}
    for cohort in dict.fromkeys(run.cohort for run in runs):
        members = [run for run in runs if run.cohort == cohort]
        if len(members) >= RUNS_MIN:
            profile = StepProfile.of([run.seconds for run in members])
            order = np.argsort([levels_of(run.seconds, profile.shape)[0] for run in members])[calm(len(members))]
            means = np.array([_signal_means(run, names, fractions) for run in members])
            expected[cohort] = Expected(profile, means[order].mean(axis=0))
    return expected


def progress_of(runs: Sequence[PastRun], names: Sequence[str], fractions: Floats) -> Progress:
    """Progress of every run against the other runs of its cohort."""
    n_runs, n_fractions = len(runs), len(fractions)
    columns = {name: np.zeros((n_runs, n_fractions)) for name in (*_COMPARED, *_OWN)}
    is_known, signals = np.zeros(n_runs, dtype=np.bool_), np.zeros((n_runs, n_fractions, len(names)))
    for cohort in dict.fromkeys(run.cohort for run in runs):
        places = np.array([place for place, run in enumerate(runs) if run.cohort == cohort])
        members = [runs[place] for place in places]
        for name, values in zip(
            _OWN, np.swapaxes([_of_itself(run.seconds, fractions) for run in members], 0, 1), strict=True
        ):
            columns[name][places] = values
        if len(members) > RUNS_MIN:
            is_known[places] = True
            signals[places] = _signals_of_cohort(members, names, fractions)
            compared = np.swapaxes(_compared([run.seconds for run in members], fractions), 0, 1)
            for name, values in zip(_COMPARED, compared, strict=True):
                columns[name][places] = values
    return Progress(is_known=is_known, signals=signals, **columns)


_COMPARED = ("level", "recent", "rest")
_OWN = ("own_recent", "own_roughness", "own_rest", "seen_seconds", "rest_seconds")


def steps_at(fractions: Floats, n_steps: int) -> Floats:
    """Return the number of steps at each fraction of a run, (n_fractions,): at least one, and one is left."""
    return np.clip(np.round(fractions * n_steps), 1, n_steps - 1)


def _signal_means(run: PastRun, names: Sequence[str], fractions: Floats) -> Floats:
    """Means of the steps seen at each fraction, shape (n_fractions, n_signals)."""
    counts = steps_at(fractions, len(run.seconds)).astype(np.int64)
    sums = [np.cumsum(run.signals[name])[counts - 1] for name in names]
    return np.array(sums).reshape(len(names), len(counts)).T / counts[:, None]


def _signals_of_cohort(members: Sequence[PastRun], names: Sequence[str], fractions: Floats) -> Floats:
    """Differences of each run's signals from the calm ones of the others, shape (n_members, n_fractions, n_signals)."""
    means = np.array([_signal_means(run, names, fractions) for run in members])
    seconds = np.array([run.seconds.mean() for run in members])
    return np.array([means[index] - means[_calm_others(seconds, index)].mean(axis=0) for index in range(len(members))])


def _calm_others(seconds: Floats, index: int) -> NDArray[np.int64]:
    """Return the places of the calm runs among all but one."""
    others = np.delete(np.arange(len(seconds)), index)
    return others[np.argsort(seconds[others])[calm(len(others))]]


def _compared(members: Sequence[Floats], fractions: Floats) -> Floats:
    """Level, recent and rest of each run to the calm ones of the others, shape (n_members, 3, n_fractions)."""
    shape = shape_of(members)
    levels = np.array([levels_of(seconds, shape) for seconds in members])
    ratios = []
    for index, seconds in enumerate(members):
        calm_seconds, calm_log = levels[_calm_others(levels[:, 0], index)].mean(axis=0)
        of_run = lengthened(shape, len(seconds))
        counts = steps_at(fractions, len(seconds)).astype(np.int64)
        pace = paces(seconds, of_run, counts)
        rest = np.log(_after(seconds, counts) / (calm_seconds * _after(of_run, counts)))
        ratios.append([pace[:, 0] - calm_log, pace[:, 1] - calm_log, rest])
    return np.array(ratios)


def _of_itself(seconds: Floats, fractions: Floats) -> Floats:
    """The columns _OWN of one run, shape (5, n_fractions)."""
    counts = steps_at(fractions, len(seconds)).astype(np.int64)
    pace = paces(seconds, np.ones(len(seconds)), counts)
    left = _after(seconds, counts)
    seen = seconds.sum() - left
    rest = np.log(left / (len(seconds) - counts)) - np.log(seen / counts)
    return np.array([pace[:, 1] - pace[:, 0], pace[:, 2], rest, seen, left])


def _after(values: Floats, counts: NDArray[np.int64]) -> Floats:
    """Sums of the values after the first `counts`, (n_counts,)."""
    after: Floats = values.sum() - np.cumsum(values)[counts - 1]
    return after
