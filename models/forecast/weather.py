"""The system's weather: the slowdown of runs against their expected time, now and in the next hours."""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import pandas as pd

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.data.schema.question import HOURS_MAX
from crosswind.models.forecast.backtest import RUNS_MIN, Score, backtest, candidates
from crosswind.models.forecast.observations import HOUR_NS, Lagged, Observations, Targets, Times
from crosswind.models.forecast.weather_models import WeatherModel
from crosswind.models.surrogate.conformal import conformal_corrections
from crosswind.models.surrogate.surrogate import LEVELS, NotFittedError

HORIZONS_HOURS = (0.0, 1.0, 6.0, float(HOURS_MAX))
MEMORY_HOURS = (1.0, 6.0, 48.0, 168.0)
# Slowdowns given where nothing is known, a wide guess and no measurement: a third faster to five times slower.
UNKNOWN = (0.7, 0.8, 0.9, 1.0, 1.25, 2.0, 3.0, 5.0)


@dataclass
class Weather:
    """Slowdown of a workload at a time: its time over the expected one of its cohort, 1 when all is as usual.

    The candidate that did best in the backtest is taken, its quantiles corrected by their errors there.
    """

    seed: int = 0
    horizons_hours: tuple[float, ...] = HORIZONS_HOURS
    memory_hours: tuple[float, ...] = MEMORY_HOURS
    scores: tuple[Score, ...] = ()
    chosen: str = ""
    runs: Observations | None = field(default=None, repr=False)
    model: WeatherModel | None = field(default=None, repr=False)
    corrections: Floats | None = field(default=None, repr=False)  # (n_horizons, n_levels)

    def fit(self, ratios: pd.DataFrame) -> Self:
        """Learns from runs: started_ns, workload, log_ratio, and known_ns and counters if there are any.

        With fewer than 40 runs nothing is learned, and UNKNOWN is predicted. Raises: InvalidInputError.
        """
        self.runs = Observations.of(ratios)
        self.scores, self.chosen, self.model, self.corrections = (), "", None, None
        if len(self.runs) < RUNS_MIN:
            return self
        lagged = Lagged(self.memory_hours, self.runs.counter_names)
        models = candidates(self.seed, len(self.runs))
        tested = backtest(self.runs, lagged, self.horizons_hours, models)
        self.scores, self.chosen = tested.scores, tested.chosen
        self.corrections = np.array([conformal_corrections(errors, LEVELS) for errors in tested.errors])
        [best] = [model for model in models if model.name == tested.chosen]
        self.model = best.fit(self.runs, lagged, self.horizons_hours)
        return self

    def observe(self, ratios: pd.DataFrame) -> None:
        """Adds later runs without learning again. Raises: NotFittedError, InvalidInputError."""
        before, later = self._alike(ratios)
        if len(later) and len(before) and later.known_ns[0] < before.known_ns[-1]:
            raise InvalidInputError(
                f"a run became known at {later.known_ns[0]} ns, expected {before.known_ns[-1]} or later"
            )
        self.runs = _joined(before, later)

    def over(self, ratios: pd.DataFrame) -> Self:
        """Return the same model over these runs instead, of which most are those that it learned from.

        Raises: NotFittedError, InvalidInputError.
        """
        _, runs = self._alike(ratios)
        return replace(self, runs=runs)

    def _alike(self, ratios: pd.DataFrame) -> tuple[Observations, Observations]:
        """Return the runs so far, and others of the same counters."""
        if self.runs is None:
            raise NotFittedError("Weather.observe or Weather.over came before fit")
        later = Observations.of(ratios)
        if later.counter_names != self.runs.counter_names:
            raise InvalidInputError(
                f"later runs have counters {later.counter_names}, expected {self.runs.counter_names}"
            )
        return self.runs, later

    def at(self, times_ns: Times, workload: str, *, now_ns: int | None = None) -> Prediction:
        """Quantiles of the ratio of runs that begin at these times, shape (n_times, n_levels).

        Only runs known by `now_ns` count (None: all). Raises: NotFittedError, InvalidInputError.
        """
        if self.runs is None:
            raise NotFittedError("Weather.at came before fit")
        times = np.asarray(times_ns)
        if times.ndim != 1 or times.dtype.kind not in "iu":
            raise InvalidInputError(f"times_ns are {times_ns}, expected whole nanoseconds, shape (n_times,)")
        if self.model is None or self.corrections is None:
            return Prediction(LEVELS, np.tile(np.array(UNKNOWN), (len(times), 1)))
        newest = int(self.runs.known_ns[-1]) if now_ns is None else now_ns
        targets = Targets(times, np.minimum(times, newest), np.full(len(times), workload))
        nearest = np.abs(targets.horizon_hours[:, None] - np.array(self.horizons_hours)).argmin(axis=1)
        return monotone(LEVELS, np.exp(self.model.predict(self.runs, targets) + self.corrections[nearest]))

    def next_day(self, now_ns: int, workload: str) -> Prediction:
        """Quantiles of each of the next 24 hours from now on, shape (25, n_levels)."""
        return self.at(now_ns + HOUR_NS * np.arange(25), workload, now_ns=now_ns)


def _joined(runs: Observations, later: Observations) -> Observations:
    return Observations(
        np.concatenate([runs.started_ns, later.started_ns]),
        np.concatenate([runs.known_ns, later.known_ns]),
        np.concatenate([runs.workload, later.workload]),
        np.concatenate([runs.log_ratio, later.log_ratio]),
        np.concatenate([runs.counters, later.counters]),
        runs.counter_names,
    )
