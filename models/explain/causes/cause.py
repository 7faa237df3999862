"""What every cause promises: a claim on the excess of one or more phases, from evidence in the same unit, seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from crosswind.data.prediction import Floats

COUNTS_BEYOND = 5.0  # standard deviations of the cohort, above which a count speaks for a cause


@dataclass(frozen=True)
class Excess:
    """Measured - expected of every column, arrays of one shape, NaN = not recorded; and the cohort's usual spread."""

    values: Mapping[str, Floats]
    spread: Mapping[str, float]

    def __getitem__(self, name: str) -> Floats:
        """That of one column."""
        return self.values[name]

    def stands_out(self, name: str, *, least: float) -> NDArray[np.bool_]:
        """Where a count is more by `least`, and by more than the cohort's runs ever differ."""
        return np.asarray(np.nan_to_num(self[name]) > max(least, COUNTS_BEYOND * np.nan_to_num(self.spread[name])))


@dataclass(frozen=True)
class Observed:
    """A run against its cohort: column name -> mean per segment; names as in segments.COLUMNS."""

    measured: Mapping[str, float]
    expected: Mapping[str, float]

    def excess(self, name: str) -> float:
        """Measured - expected, NaN when either was not recorded."""
        return self.measured[name] - self.expected[name]


class Cause(Protocol):
    """One named way of losing time."""

    name: ClassVar[str]
    next_action: ClassVar[str]  # what the reader may do about it
    columns: ClassVar[tuple[str, ...]]  # by whose usual spread a share of it is judged

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Phase -> seconds a segment that the evidence speaks for; arrays of one shape, NaN where it is missing."""
        ...

    def evidence(self, observed: Observed) -> str:
        """What speaks for it, in words and numbers."""
        ...


def milliseconds(seconds: float) -> str:
    """A time per step, with three significant digits."""
    return f"{seconds * 1e3:.3g} ms"
