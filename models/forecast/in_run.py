"""The remaining time of a run in progress, from its steps so far and from the course of earlier runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.models.forecast.analogues import ROWS_MIN, Analogues, Places
from crosswind.models.forecast.change_points import Regime
from crosswind.models.forecast.pace import Pace, memory_of, paces
from crosswind.models.forecast.past_runs import Expected, PastRun, Progress, checked, expectations, progress_of
from crosswind.models.forecast.profile import StepProfile, check_steps, shape_of
from crosswind.models.scores import mean_pinball
from crosswind.models.surrogate.surrogate import LEVELS, NotFittedError

FRACTIONS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95)
PRIOR_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7)
STEP_MISSES_MAX = 2000  # distances of a next step from the recent level that are kept


@dataclass
class InRunForecaster:
    """Forecasts of the rest of a run, learned from earlier runs at several fractions of their steps.

    The remaining seconds are those of a calm run of the cohort, times a ratio; its distribution is that of past runs
    that looked alike after the same fraction of their steps. A run whose cohort is unknown is compared with its own
    steps so far.
    """

    fractions: tuple[float, ...] = FRACTIONS
    signal_names: tuple[str, ...] = ()
    expected: dict[str, Expected] = field(default_factory=dict)
    by_cohort: list[Analogues] = field(default_factory=list)  # one a fraction
    by_itself: list[Analogues] = field(default_factory=list)
    prior_weights: tuple[float, ...] = ()
    step_misses: Floats = field(default_factory=lambda: np.empty(0), repr=False)

    def fit(self, runs: Sequence[PastRun]) -> Self:
        """Learns from completed runs; ROWS_MIN of them at least. Raises: InvalidInputError."""
        self.signal_names = checked(runs)
        fractions = _checked_fractions(self.fractions)
        self.expected = expectations(runs, self.signal_names, fractions)
        progress = progress_of(runs, self.signal_names, fractions)
        comparable = np.flatnonzero(progress.is_known).astype(np.int64)
        cohorts = [run.cohort for run in runs]
        self.by_itself = [_against_itself(progress, place, cohorts) for place in range(len(fractions))]
        self.by_cohort = (
            [_against_cohort(progress, comparable, place, cohorts) for place in range(len(fractions))]
            if len(comparable) >= ROWS_MIN
            else []
        )
        self.prior_weights = tuple(
            self._prior_weight(runs, progress, comparable, place) for place in range(len(fractions))
        )
        self.step_misses = _step_misses(runs)
        return self

    def start(self, cohort: str, total_steps: int, prior: Prediction | None = None) -> "InRun":
        """Start a run; `prior` is the prediction of its seconds from before, shape (1, n_levels).

        Raises: NotFittedError, InvalidInputError.
        """
        if not len(self.step_misses):
            raise NotFittedError("InRunForecaster.start came before fit")
        if total_steps < 2:
            raise InvalidInputError(f"total_steps is {total_steps}, expected at least 2")
        if prior is not None and (prior.values.shape != (1, len(LEVELS)) or not prior.values.min() > 0):
            raise InvalidInputError(
                f"prior is {prior.values}, expected positive seconds at {len(LEVELS)} levels of one run"
            )
        return InRun(self, cohort, total_steps, None if prior is None else prior.values[0])

    def place_of(self, fraction: float) -> int:
        """The place of the nearest learned fraction."""
        return int(np.argmin(np.abs(np.log(np.array(self.fractions) / fraction))))

    def _prior_weight(self, runs: Sequence[PastRun], progress: Progress, places: Places, place: int) -> float:
        """Return the weight of the forecast from before the start, from the runs that have one; 0 where too few do."""
        rows = [index for index, run in enumerate(places) if len(runs[int(run)].prior) == len(LEVELS)]
        if len(rows) < ROWS_MIN or not self.by_cohort:
            return 0.0
        runs_of = places[rows]
        columns = (progress.seen_seconds, progress.rest_seconds, progress.rest)
        seen, left, rest = (values[runs_of, place] for values in columns)
        own = self.by_cohort[place].left_out()[rows] + (np.log(left) - rest)[:, None]
        prior = _rest_of_prior(np.array([runs[int(run)].prior for run in runs_of]), seen[:, None], np.exp(own))
        blends = [(1 - weight) * own + weight * np.log(prior) for weight in PRIOR_WEIGHTS]
        losses = [mean_pinball(blend, np.log(left), LEVELS) for blend in blends]
        return PRIOR_WEIGHTS[int(np.argmin(losses))]


@dataclass
class InRun:
    """A run in progress: takes its steps as they end, and predicts at any time. Keeps a few sums, not the steps."""

    forecaster: InRunForecaster
    cohort: str
    total_steps: int
    prior: Floats | None = None  # (n_levels,) seconds
    pace: Pace = field(init=False)
    regime: Regime = field(init=False)
    profile: StepProfile = field(init=False, repr=False)  # of shape 1 where the cohort is not known
    changes: list[int] = field(default_factory=list)  # steps at which a new level began

    def __post_init__(self) -> None:
        self.pace = Pace(memory_of(self.total_steps))
        self.regime = Regime()
        expected = self.forecaster.expected.get(self.cohort) if self.forecaster.by_cohort else None
        self.profile = StepProfile(1.0, 1.0, np.empty(0)) if expected is None else expected.profile

    @property
    def is_known(self) -> bool:
        """Return whether its cohort has enough runs to compare with."""
        return self.cohort in self.forecaster.expected and bool(self.forecaster.by_cohort)

    def observe(self, seconds: Floats, signals: Mapping[str, Floats] | None = None) -> None:
        """Takes the next steps' seconds, (n,), of the slowest rank, and their signals, (n,) each.

        Raises: InvalidInputError; nothing of what is refused counts.
        """
        check_steps(seconds, f"a run of {self.cohort}")
        if self.pace.count + len(seconds) > self.total_steps:
            raise InvalidInputError(
                f"{self.pace.count + len(seconds)} steps of a run of {self.cohort}, expected {self.total_steps} in all"
            )
        signal_values = self._signals(len(seconds), signals or {})
        usual = self.profile.usual * self.profile.between(self.pace.count, self.pace.count + len(seconds))
        for index, value in enumerate(seconds):
            of_step = {name: float(values[index]) for name, values in signal_values.items()}
            ratio = self.pace.observe(float(value), float(usual[index]), of_step)
            if self.regime.observe(ratio):
                self.changes.append(self.regime.changed_at)

    def remaining(self) -> Prediction:
        """Quantiles of the remaining seconds, shape (1, n_levels); before the first step those of `prior`.

        Raises: InvalidInputError before the first step without a prior.
        """
        if self.pace.count == 0:
            return Prediction(LEVELS, self._before()[None, :])
        if self.pace.count == self.total_steps:
            return Prediction(LEVELS, np.zeros((1, len(LEVELS))))
        place = self.forecaster.place_of(self.pace.count / self.total_steps)
        own = np.exp(self._log_ratio(place)) * self._calm_rest()
        weight = self.forecaster.prior_weights[place]
        if self.prior is None or weight == 0:
            return monotone(LEVELS, own[None, :])
        prior = _rest_of_prior(self.prior, np.array(self.pace.seconds), own)
        return monotone(LEVELS, np.exp((1 - weight) * np.log(own) + weight * np.log(prior))[None, :])

    def total(self) -> Prediction:
        """Quantiles of the seconds of all steps, shape (1, n_levels). Raises: InvalidInputError as `remaining`."""
        return Prediction(LEVELS, self.remaining().values + self.pace.seconds)

    def next_steps(self, count: int = 1) -> Prediction:
        """Quantiles of each of the next steps' seconds, shape (count, n_levels). Raises: InvalidInputError."""
        left = self.total_steps - self.pace.count
        if not 1 <= count <= left or self.pace.count == 0:
            raise InvalidInputError(
                f"the next {count} steps after {self.pace.count} of {self.total_steps}: expected 1 to {left}, after one"
            )
        here = self.profile.usual * self.profile.between(self.pace.count, self.pace.count + count)
        ratios = np.exp(self.pace.recent + np.quantile(self.forecaster.step_misses, LEVELS))
        return monotone(LEVELS, here[:, None] * ratios[None, :])

    def _before(self) -> Floats:
        if self.prior is None:
            raise InvalidInputError(
                f"no step of the run of {self.cohort} is seen yet, and nothing was predicted before"
            )
        return self.prior

    def _calm_rest(self) -> float:
        left = self.profile.sum_between(self.pace.count, self.total_steps)
        return left * (self.profile.seconds if self.is_known else self.pace.mean_seconds)

    def _log_ratio(self, place: int) -> Floats:
        pace = self.pace
        if not self.is_known:
            return self.forecaster.by_itself[place].predict(
                np.array([pace.recent - pace.level, pace.roughness]), self.cohort
            )
        calm = self.forecaster.expected[self.cohort].signals[place]
        means = np.array([pace.signals.get(name, np.nan) / pace.count for name in self.forecaster.signal_names])
        row = np.concatenate([[pace.level, pace.recent - pace.level], means - calm])
        return self.forecaster.by_cohort[place].predict(row, self.cohort)

    def _signals(self, count: int, signals: Mapping[str, Floats]) -> dict[str, Floats]:
        wanted = {name: signals[name] for name in self.forecaster.signal_names if name in signals}
        for name, values in wanted.items():
            if values.shape != (count,) or not np.all(np.isfinite(values)):
                raise InvalidInputError(
                    f"signal {name} is {values}, expected a finite number for each of {count} steps"
                )
        return wanted


def _checked_fractions(fractions: Sequence[float]) -> Floats:
    if not fractions or not all(0 < low < 1 for low in fractions) or list(fractions) != sorted(set(fractions)):
        raise InvalidInputError(f"fractions are {fractions}, expected rising numbers between 0 and 1")
    return np.array(fractions, dtype=np.float64)


def _against_cohort(progress: Progress, places: Places, place: int, cohorts: Sequence[str]) -> Analogues:
    level, recent = progress.level[places, place], progress.recent[places, place]
    features = np.column_stack([level, recent - level, progress.signals[places, place]])
    return Analogues.of(features, progress.rest[places, place], [cohorts[row] for row in places])


def _against_itself(progress: Progress, place: int, cohorts: Sequence[str]) -> Analogues:
    """Analogues from runs compared with their own steps so far, as if their cohort were unknown."""
    features = np.column_stack([progress.own_recent[:, place], progress.own_roughness[:, place]])
    return Analogues.of(features, progress.own_rest[:, place], cohorts)


def _rest_of_prior(prior: Floats, seen_seconds: Floats, own: Floats) -> Floats:
    """Return a forecast of the whole less the seconds seen, at least half the lowest own quantile."""
    rest: Floats = np.maximum(prior - seen_seconds, own[..., :1] / 2)
    return rest


def _step_misses(runs: Sequence[PastRun]) -> Floats:
    """Return log ratios of steps to the recent level before them, rising, evenly thinned to STEP_MISSES_MAX."""
    misses = []
    for cohort in dict.fromkeys(run.cohort for run in runs):
        members = [run.seconds for run in runs if run.cohort == cohort]
        shape = shape_of(members)
        for seconds in members:
            of_run = shape[: len(seconds)]
            recent = paces(seconds, of_run, np.arange(1, len(seconds)))[:, 1]
            misses.append(np.log(seconds / of_run)[1:] - recent)
    every = np.concatenate(misses)
    return np.sort(every)[np.linspace(0, len(every) - 1, min(len(every), STEP_MISSES_MAX)).astype(np.int64)]
