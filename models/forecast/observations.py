"""Runs as measurements of the system's weather, and the features known before a time."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats

STARTED, KNOWN, WORKLOAD, LOG_RATIO = "started_ns", "known_ns", "workload", "log_ratio"
HOUR_NS = 3_600_000_000_000
DAY_HOURS, WEEK_HOURS = 24, 168
RUNS_BELIEVED = 2.0  # runs of ratio 1 that are added to a mean
Times = NDArray[np.int64]


@dataclass(frozen=True)
class Observations:
    """n runs in the order in which they became known: log ratios of their time to their cohort's expected one."""

    started_ns: Times
    known_ns: Times  # (n,), rising
    workload: NDArray[np.str_]
    log_ratio: Floats
    counters: Floats  # (n, n_counters), NaN where missing
    counter_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, ratios: pd.DataFrame) -> Self:
        """Make them of columns started_ns, workload and log_ratio; all others are counters read as the run began.

        A run's ratio is known from `known_ns` on, its end; without that column, from its start.
        Raises: InvalidInputError.
        """
        missing = [name for name in (STARTED, WORKLOAD, LOG_RATIO) if name not in ratios]
        if missing:
            raise InvalidInputError(
                f"ratios have no column {', '.join(missing)}; they have {', '.join(map(str, ratios))}"
            )
        known_from = KNOWN if KNOWN in ratios else STARTED
        counters = [str(name) for name in ratios.columns if name not in (STARTED, KNOWN, WORKLOAD, LOG_RATIO)]
        for name in (STARTED, known_from, LOG_RATIO, *counters):
            if not is_numeric_dtype(ratios[name]):
                raise InvalidInputError(f"column {name} of ratios is of type {ratios[name].dtype}, expected numbers")
        _check(ratios, (STARTED, known_from, LOG_RATIO))
        ordered = ratios.sort_values(known_from, kind="stable")
        return cls(
            ordered[STARTED].to_numpy(np.int64),
            ordered[known_from].to_numpy(np.int64),
            ordered[WORKLOAD].to_numpy(np.str_),
            ordered[LOG_RATIO].to_numpy(np.float64),
            ordered[counters].to_numpy(np.float64, na_value=np.nan).reshape(len(ordered), len(counters)),
            tuple(counters),
        )

    def __len__(self) -> int:
        return len(self.log_ratio)

    def first(self, count: int) -> "Observations":
        """The runs that became known first."""
        return self.rows(np.arange(min(count, len(self))))

    def newest(self, count: int) -> "Observations":
        """The runs that became known last."""
        return self.rows(np.arange(max(len(self) - count, 0), len(self)))

    def rows(self, places: NDArray[np.int64]) -> "Observations":
        """The runs at these places."""
        return Observations(
            self.started_ns[places],
            self.known_ns[places],
            self.workload[places],
            self.log_ratio[places],
            self.counters[places],
            self.counter_names,
        )


@dataclass(frozen=True)
class Targets:
    """m targets: log ratios of runs of a workload that start at `target_ns`, from what is known at `cutoff_ns`."""

    target_ns: Times
    cutoff_ns: Times
    workload: NDArray[np.str_]

    @property
    def horizon_hours(self) -> Floats:
        """Hours from cutoff to start, (m,)."""
        ahead: Floats = np.maximum(self.target_ns - self.cutoff_ns, 0) / HOUR_NS
        return ahead


@dataclass(frozen=True)
class Lagged:
    """Turns targets into rows of features: earlier levels with their decay, the hour, and the latest counters."""

    memory_hours: tuple[float, ...]
    counter_names: tuple[str, ...] = field(default=())

    @property
    def names(self) -> list[str]:
        """Names of the columns of `rows`."""
        levels = [f"level_{hours:g}h" for hours in self.memory_hours] + [
            f"own_{hours:g}h" for hours in self.memory_hours
        ]
        return [*levels, *HARMONICS, "horizon_hours", "silent_hours", "known_runs", *self.counter_names]

    @property
    def linear(self) -> int:
        """Number of leading columns for a linear model: they are 0 where nothing is known."""
        return 2 * len(self.memory_hours) + len(HARMONICS)

    def rows(self, past: Observations, targets: Targets) -> Floats:
        """Features of the targets, (m, n_columns), from what was known by their cutoffs."""
        newest = np.searchsorted(past.known_ns, targets.cutoff_ns, side="right") - 1
        horizon = targets.horizon_hours
        shared = [
            level_at(past, newest, targets.cutoff_ns, hours) * np.exp(-horizon / hours) for hours in self.memory_hours
        ]
        own = [own_level_at(past, targets, hours) * np.exp(-horizon / hours) for hours in self.memory_hours]
        silent = (
            np.where(newest >= 0, targets.cutoff_ns - past.known_ns[newest], 0) / HOUR_NS if len(past) else 0 * horizon
        )
        counters = past.counters[newest] if len(past) else np.empty((len(horizon), past.counters.shape[1]))
        counters = np.where((newest >= 0)[:, None], counters, np.nan)
        return np.column_stack([*shared, *own, harmonics(targets.target_ns), horizon, silent, newest + 1.0, counters])


HARMONICS = ("day_sin", "day_cos", "half_day_sin", "half_day_cos", "week_sin", "week_cos")


def harmonics(times_ns: Times) -> Floats:
    """The hour of the day, of half a day and of the week, as sines and cosines, shape (m, 6)."""
    hours = (times_ns % (WEEK_HOURS * HOUR_NS)) / HOUR_NS
    angles = [2 * np.pi * hours / period for period in (DAY_HOURS, DAY_HOURS / 2, WEEK_HOURS)]
    return np.column_stack([wave(angle) for angle in angles for wave in (np.sin, np.cos)])


def level_at(past: Observations, newest: NDArray[np.int64], cutoff_ns: Times, memory_hours: float) -> Floats:
    """Mean log ratio of the runs up to `newest`, each weighing exp(-age / memory), drawn to 0 where they are few."""
    if len(past) == 0:
        return np.zeros(len(cutoff_ns))
    sums, weights = decayed_sums(past.known_ns, past.log_ratio, memory_hours)
    age = np.exp(-np.maximum(cutoff_ns - past.known_ns[newest], 0) / HOUR_NS / memory_hours)
    level = sums[newest] * age / (weights[newest] * age + RUNS_BELIEVED)
    return np.where(newest >= 0, level, 0.0)


def own_level_at(past: Observations, targets: Targets, memory_hours: float) -> Floats:
    """The same of the workload's own runs alone."""
    levels = np.zeros(len(targets.cutoff_ns))
    for name in np.unique(targets.workload):
        rows = targets.workload == name
        own = past.rows(np.flatnonzero(past.workload == name))
        newest = np.searchsorted(own.known_ns, targets.cutoff_ns[rows], side="right") - 1
        levels[rows] = level_at(own, newest, targets.cutoff_ns[rows], memory_hours)
    return levels


def decayed_sums(known_ns: Times, values: Floats, memory_hours: float) -> tuple[Floats, Floats]:
    """Sums of the values and of their weights at every run, older ones weighing exp(-age / memory)."""
    kept = np.exp(-np.diff(known_ns, prepend=known_ns[:1]) / HOUR_NS / memory_hours)
    sums, weights = np.empty(len(values)), np.empty(len(values))
    total = weight = 0.0
    for index, value in enumerate(values):
        total, weight = total * kept[index] + value, weight * kept[index] + 1
        sums[index], weights[index] = total, weight
    return sums, weights


def targets_of(runs: Observations, horizons_hours: Sequence[float]) -> tuple[Targets, Floats]:
    """Targets for every run from every horizon before its start, and their log ratios, (n_horizons * n_runs,)."""
    target = np.concatenate([runs.started_ns] * len(horizons_hours))
    ahead = np.repeat(np.array(horizons_hours) * HOUR_NS, len(runs)).astype(np.int64)
    workload = np.concatenate([runs.workload] * len(horizons_hours))
    # A run is known after it began, so that one nanosecond keeps runs without an end from predicting themselves.
    return Targets(target, target - np.maximum(ahead, 1), workload), np.concatenate(
        [runs.log_ratio] * len(horizons_hours)
    )


def _check(ratios: pd.DataFrame, names: Sequence[str]) -> None:
    for name in names:
        values = ratios[name].to_numpy(np.float64, na_value=np.nan)
        if not np.all(np.isfinite(values)):
            row = int(np.argmin(np.isfinite(values)))
            raise InvalidInputError(f"column {name} of ratios is {values[row]} in row {row}, expected a finite number")
