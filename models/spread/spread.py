"""The distribution of a cohort's next run: its level, its scale, and the conditions before it begins.

log seconds = level of the cohort + scale of the cohort x (quantile given the conditions). Level and scale come from the
cohort's own earlier runs, quantiles from all cohorts together. Quantiles are corrected by their errors on rows that
they were not learned from, and conditions are used only if they help there. A bias that persists from run to run, as
when a system becomes faster, is followed: each quantile moves up a little after a run above it, and down after one
below, in proportion to its level, and the offsets decay. Source: Gibbs and Candes 2021, "Adaptive conformal inference
under distribution shift"; Angelopoulos, Candes, Tibshirani 2023, "Conformal PID control for time series prediction".
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction, monotone
from crosswind.models.spread.cohort import CohortState, state_after
from crosswind.models.spread.few_runs import few_run_quantiles, shrunken
from crosswind.models.spread.learn import Learned, learn
from crosswind.models.spread.level import OWN_RUNS_MIN
from crosswind.models.spread.linear_quantiles import Standard
from crosswind.models.surrogate.surrogate import LEVELS, NotFittedError

ROWS_MAX = 2000  # the newest; older ones say little about the next
FOLLOWED_RUNS = 100  # the newest of those learned, first predicted from the others
STEP_SHARE = 0.02  # of the 90 % interval's width: the largest step of a quantile after a run
DECAY = 0.98  # of the offsets at each run
LOW, HIGH = LEVELS.index(0.05), LEVELS.index(0.95)

# The conditions that predicted runs of the lab: load by others on its nodes in the newest sweep, and its neighbours.
PREDICTIVE = (
    "condition.others_cores",
    "condition.others_page_faults",
    "condition.others_disk_bytes",
    "condition.neighbour_ranks",
)


@dataclass
class CohortSpread:
    """Learns from the runs of many cohorts in the order of time, and predicts one or many runs at a time.

    `observe` adds a run that ended since: the level of its cohort and the quantiles move at once, all else at the next
    fit.
    """

    _standard: Standard | None = field(default=None, init=False, repr=False)
    _learned: Learned | None = field(default=None, init=False, repr=False)
    _cohorts: dict[str, CohortState] = field(default_factory=dict, init=False, repr=False)
    _few: dict[int, Floats] = field(default_factory=dict, init=False, repr=False)
    _offsets: Floats = field(default_factory=lambda: np.zeros(len(LEVELS)), init=False, repr=False)  # in widths

    @property
    def uses_conditions(self) -> bool:
        """Return whether conditions predicted runs that they were not learned from. Raises: NotFittedError."""
        return self._of_fit().uses_conditions

    def fit(
        self, cohorts: Sequence[str], seconds: Floats, conditions: pd.DataFrame, *, expected: Floats | None = None
    ) -> Self:
        """Learns from runs, oldest first: seconds and expected have shape (n_runs,), conditions n_runs rows.

        `conditions` may have no columns; NaN is unknown. `expected` are another model's expected seconds.
        Raises: InvalidInputError on wrong shapes or values, or when no two runs can be compared.
        """
        check_runs(cohorts, seconds, conditions, expected)
        newest = slice(-ROWS_MAX, None)
        runs = _Runs(
            list(cohorts)[newest],
            np.log(seconds[newest]),
            conditions.iloc[newest],
            _logs_of(expected, len(seconds))[newest],
        )
        self._learn(runs)
        self._offsets = _offsets_after(runs)
        return self

    def _learn(self, runs: "_Runs") -> Self:
        members = {name: np.flatnonzero(np.array(runs.names) == name) for name in dict.fromkeys(runs.names)}
        self._standard = Standard.of(runs.conditions)
        of_cohort = {name: runs.logs[rows] for name, rows in members.items()}
        self._few = few_run_quantiles(of_cohort, {name: runs.expected[rows] for name, rows in members.items()})
        if not self._few:
            raise InvalidInputError(
                f"{len(runs.logs)} runs, of which no three compare: run one cohort at least three times"
            )
        self._learned = learn(members, runs.logs, self._standard.matrix(runs.conditions))
        self._cohorts = dict(self._learned.cohorts)
        return self

    def predict(
        self, cohorts: Sequence[str], conditions: pd.DataFrame, *, expected: Floats | None = None
    ) -> Prediction:
        """Quantiles of the next run's seconds at LEVELS, one row for each cohort and row of conditions.

        A cohort that never ran is predicted from its `expected` seconds or, without, from the other cohorts.
        Raises: NotFittedError; InvalidInputError for other conditions than in fit.
        """
        matrix = self._matrix(conditions, len(cohorts))
        return monotone(LEVELS, np.exp(self._log_quantiles(cohorts, matrix, _logs_of(expected, len(cohorts)))))

    def level_seconds(self, cohorts: Sequence[str]) -> Floats:
        """The usual seconds of cohorts, NaN of one that never ran, shape (n_cohorts,). Raises: NotFittedError."""
        self._of_fit()
        states = [self._cohorts.get(name) for name in cohorts]
        return np.exp([np.nan if state is None else state.level for state in states])

    def observe(self, cohort: str, seconds: float, conditions: pd.DataFrame, *, expected: Floats | None = None) -> None:
        """Adds a run of a cohort that ended: its seconds, and the one row of conditions before it.

        Raises: NotFittedError, InvalidInputError.
        """
        matrix = self._matrix(conditions, 1)
        check_runs([cohort], np.array([seconds]), conditions, expected)
        [quantiles] = self._log_quantiles([cohort], matrix, _logs_of(expected, 1))
        self._offsets = _stepped(self._offsets, np.log(seconds) <= quantiles)
        self._count(cohort, seconds, matrix)

    def observe_level(self, cohort: str, seconds: float, conditions: pd.DataFrame) -> None:
        """Adds an old run to its cohort's level alone. Raises: as `observe`."""
        matrix = self._matrix(conditions, 1)
        check_runs([cohort], np.array([seconds]), conditions, None)
        self._count(cohort, seconds, matrix)

    def _count(self, cohort: str, seconds: float, matrix: Floats) -> None:
        shift = float(self._of_fit().model.shift(matrix)[0])
        self._cohorts[cohort] = state_after(self._cohorts.get(cohort), float(np.log(seconds)), shift)

    def _log_quantiles(self, cohorts: Sequence[str], matrix: Floats, expected: Floats) -> Floats:
        """Log seconds at LEVELS, shape (n_cohorts, n_levels)."""
        learned = self._of_fit()
        quantiles, shift = learned.quantiles(matrix), learned.model.shift(matrix)
        rows = [self._row(name, quantiles[row], shift[row], expected[row]) for row, name in enumerate(cohorts)]
        logs = np.array(rows).reshape(len(rows), len(LEVELS))
        return logs + self._offsets * (logs[:, [HIGH]] - logs[:, [LOW]])

    def _row(self, name: str, quantiles: Floats, shift: float, expected: float) -> Floats:
        """Log seconds at LEVELS of one row."""
        state = self._cohorts.get(name)
        runs = 0 if state is None else len(state.logs)
        if state is not None and runs >= OWN_RUNS_MIN and self._of_fit().rows:
            return state.level + state.scale * state.shape(quantiles, shift)
        own = np.nan if state is None else state.level
        level = shrunken(own, runs, expected)
        if np.isnan(level):
            level = float(np.median([other.level for other in self._cohorts.values()]))
        return level + shift + self._few_quantiles(name, runs)

    def _few_quantiles(self, name: str, runs: int) -> Floats:
        if runs == 0 and 0 not in self._few:
            raise InvalidInputError(f"cohort {name!r} never ran and there is no other: run it first")
        counts = [count for count in self._few if count <= runs] or [min(self._few)]
        return self._few[max(counts)]

    def _matrix(self, conditions: pd.DataFrame, rows: int) -> Floats:
        if self._standard is None:
            raise NotFittedError("CohortSpread was used before fit")
        if len(conditions) != rows:
            raise InvalidInputError(f"conditions have {len(conditions)} rows, expected {rows}, one a run")
        return self._standard.matrix(conditions)

    def _of_fit(self) -> Learned:
        if self._learned is None:
            raise NotFittedError("CohortSpread was used before fit")
        return self._learned


@dataclass(frozen=True)
class _Runs:
    """Runs: their cohorts, log seconds, conditions before them, and expected log seconds, NaN where unknown."""

    names: list[str]
    logs: Floats
    conditions: pd.DataFrame
    expected: Floats

    def first(self, count: int) -> "_Runs":
        return _Runs(self.names[:count], self.logs[:count], self.conditions.iloc[:count], self.expected[:count])


def _offsets_after(runs: _Runs) -> Floats:
    """Offsets (n_levels,) of quantiles learned from the earlier runs after observing the newest ones."""
    first = len(runs.names) - min(FOLLOWED_RUNS, len(runs.names) // 3)
    try:
        earlier = CohortSpread()._learn(runs.first(first))
    except InvalidInputError:
        return np.zeros(len(LEVELS))
    for place in range(first, len(runs.names)):
        row, expected = runs.conditions.iloc[[place]], np.exp(runs.expected[[place]])
        earlier.observe(runs.names[place], float(np.exp(runs.logs[place])), row, expected=expected)
    return earlier._offsets


def _stepped(offsets: Floats, was_below: NDArray[np.bool_]) -> Floats:
    return DECAY * offsets + STEP_SHARE * (np.array(LEVELS) - was_below)


def check_runs(cohorts: Sequence[str], seconds: Floats, conditions: pd.DataFrame, expected: Floats | None) -> None:
    """Refuses runs that cannot be learned from. Raises: InvalidInputError."""
    if seconds.shape != (len(cohorts),) or len(conditions) != len(cohorts):
        raise InvalidInputError(
            f"{len(cohorts)} cohorts, seconds of shape {seconds.shape} and {len(conditions)} rows of conditions, "
            "expected one of each a run"
        )
    wrong = ~(np.isfinite(seconds) & (seconds > 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInputError(f"seconds[{row}] is {seconds[row]}, expected a positive number")
    if expected is not None and expected.shape != seconds.shape:
        raise InvalidInputError(f"expected has shape {expected.shape}, expected {seconds.shape}")


def _logs_of(expected: Floats | None, count: int) -> Floats:
    """Logarithms of expected seconds, (count,), NaN where unknown. Raises: InvalidInputError."""
    if expected is None:
        return np.full(count, np.nan)
    if expected.shape != (count,) or np.any(expected <= 0) or np.any(np.isinf(expected)):
        raise InvalidInputError(f"expected is {expected}, expected {count} positive numbers, or NaN where unknown")
    return np.log(expected)
