"""The protocol of a cause: a claim on the excess of one or more phases, from evidence in the same unit, seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats

FILLED = 0.8  # of a phase's excess, from which on seconds that nothing places are taken as spent in it
COUNTS_BEYOND = 5.0  # standard deviations of the cohort, above which a count speaks for a cause


@dataclass(frozen=True)
class Excess:
    """Measured - expected of every column, arrays of one shape, NaN = not recorded; and the cohort's usual spread."""

    values: Mapping[str, Floats]
    spread: Mapping[str, float]

    def __getitem__(self, name: str) -> Floats:
        """That of one column."""
        return self.values[name]

    @property
    def work(self) -> Floats:
        """Compute in which the rank did not wait for a core: it ran, or waited for something else."""
        return self["compute"] - self["run_queue_wait"]

    @property
    def idle(self) -> Floats:
        """Compute in which the rank's thread neither ran nor waited for a core."""
        return self.work - self["cpu_user"] - self["cpu_system"]

    def stands_out(self, name: str, *, least: float) -> NDArray[np.bool_]:
        """Return where a count is more by `least`, and by more than the cohort's runs ever differ."""
        usual = self.spread[name]
        most = COUNTS_BEYOND * usual if usual == usual else 0.0  # noqa: PLR0124 - NaN where few recorded it
        return np.asarray(self[name] > max(least, most))


@dataclass(frozen=True)
class Observed:
    """A run against its cohort: column name -> mean per segment; names as in segments.COLUMNS."""

    measured: Mapping[str, float]
    expected: Mapping[str, float]

    def excess(self, name: str) -> float:
        """Measured - expected, NaN when either was not recorded."""
        return self.measured[name] - self.expected[name]


def at_most(claim: Floats, most: Floats) -> Floats:
    """A claim, no larger than what it can have cost, where that is known; NaN where the claim's evidence is missing."""
    return np.where(np.isnan(most), claim, np.minimum(claim, most))


def where_it_fills(excess: Excess, column: str, phase: str) -> Floats:
    """Seconds of a column that may have been spent anywhere: where they stand out and fill most of a phase's excess."""
    fills = excess.stands_out(column, least=0.0) & (excess[column] >= FILLED * excess[phase])
    return np.where(fills, excess[column], 0.0)


def by_runs_alike(excess: Excess, shared: str) -> dict[str, Floats]:
    """By phase what other runs that share something take more, where it is more than runs that are alike differ by."""
    columns = {phase: f"{shared}_{phase}" for phase in ("compute", "fabric")}
    return {
        phase: np.where(excess.stands_out(column, least=0.0), excess[column], 0.0) for phase, column in columns.items()
    }


def told_by_runs_alike(observed: Observed, shared: str) -> str:
    """Return what they take, in words."""
    measured, expected = (
        values[f"{shared}_compute"] + values[f"{shared}_fabric"] for values in (observed.measured, observed.expected)
    )
    return f"take {milliseconds(measured)} a step, expected {milliseconds(expected)}"


class Cause(Protocol):
    """One named way of losing time."""

    name: ClassVar[str]
    next_action: ClassVar[str]  # what the reader may do about it
    columns: ClassVar[tuple[str, ...]]  # by whose usual spread a share of it is judged

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Phase -> seconds a segment that the evidence speaks for; arrays of one shape, NaN where it is missing."""
        ...

    def evidence(self, observed: Observed) -> str:
        """Return what speaks for it, in words and numbers."""
        ...


def milliseconds(seconds: float) -> str:
    """A time per step, with three significant digits."""
    return f"{seconds * 1e3:.3g} ms"
