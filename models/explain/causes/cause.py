"""The protocol of a cause: a claim on the excess of one or more phases, from evidence in the same unit, seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.evidence.indicators import Indicator, RunsAlike

FILLED = 0.8  # of a phase's excess, from which on seconds that nothing places count as spent in it
COUNTS_BEYOND = 5.0  # standard deviations of the cohort, above which a count speaks for a cause


@dataclass(frozen=True)
class Excess:
    """Measured - expected of every column, arrays of one shape, NaN = not recorded; and the cohort's usual spread."""

    values: Mapping[str, Floats]
    spread: Mapping[str, float]

    def __getitem__(self, name: str) -> Floats:
        """Return that of one column."""
        return self.values[name]

    @property
    def work(self) -> Floats:
        """Compute in which the rank did not wait for a core: it ran, or waited for something else."""
        return self["compute"] - self["run_queue_wait"]

    @property
    def idle(self) -> Floats:
        """Compute in which the rank's thread neither ran nor waited for a core."""
        return self.work - self["cpu_user"] - self["cpu_system"]

    def is_beyond_usual(self, name: str, *, least: float) -> NDArray[np.bool_]:
        """Return where a column is more by `least`, and by more than the cohort's runs ever differ."""
        usual = self.spread[name]
        most = COUNTS_BEYOND * usual if usual == usual else 0.0  # noqa: PLR0124 - NaN where few recorded it
        return np.asarray(self[name] > max(least, most))


@dataclass(frozen=True)
class Observed:
    """A run against its cohort: column name -> mean per segment, seconds or counts."""

    measured: Mapping[str, float]
    expected: Mapping[str, float]

    def excess(self, name: str) -> float:
        """Return measured - expected, NaN when either was not recorded."""
        return self.measured[name] - self.expected[name]

    def milliseconds(self, *names: str) -> tuple[str, str]:
        """Return the sum of these columns as text: measured and expected."""
        measured, expected = (sum(values[name] for name in names) for values in (self.measured, self.expected))
        return milliseconds(measured), milliseconds(expected)


class Cause(Protocol):
    """One named way of losing time."""

    @property
    def name(self) -> str:
        """Its name in explanations, in lower case with underscores."""
        ...

    @property
    def next_action(self) -> str:
        """Advice to the reader, a sentence."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns by whose usual spread a share of it is judged."""
        ...

    @property
    def indicators(self) -> tuple[Indicator, ...]:
        """Evidence that it needs beyond phases and thread times."""
        ...

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Phase -> seconds a segment that the evidence speaks for; arrays of one shape, NaN where it is missing."""
        ...

    def evidence(self, observed: Observed) -> str:
        """Return its evidence in words and numbers, measured and expected."""
        ...


def at_most(claim: Floats, most: Floats) -> Floats:
    """Return a claim, no larger than it can have cost, where that is known; NaN where its evidence is missing."""
    return np.where(np.isnan(most), claim, np.minimum(claim, most))


def filling(excess: Excess, column: str, phase: str) -> Floats:
    """Return a column's seconds, spent anywhere, where they are beyond the usual and fill most of a phase's excess."""
    fills = excess.is_beyond_usual(column, least=0.0) & (excess[column] >= FILLED * excess[phase])
    return np.where(fills, excess[column], 0.0)


def beyond_usual(excess: Excess, alike: RunsAlike) -> dict[str, Floats]:
    """Return by phase the seconds that runs alike take more, where that is more than runs alike differ by."""
    columns = dict(zip(alike.phases, alike.columns, strict=True))
    return {
        phase: np.where(excess.is_beyond_usual(column, least=0.0), excess[column], 0.0)
        for phase, column in columns.items()
    }


def milliseconds(seconds: float) -> str:
    """Return a time per step with three significant digits, from a second on in seconds."""
    if abs(seconds) < 0.9995:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s" if abs(seconds) < 999.5 else f"{seconds:.0f} s"
