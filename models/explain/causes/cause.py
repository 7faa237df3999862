"""What every cause promises: a claim on the excess of one or more phases, from evidence in the same unit, seconds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from crosswind.data.prediction import Floats


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

    def claims(self, excess: Mapping[str, Floats]) -> Mapping[str, Floats]:
        """Phase -> seconds a segment that the evidence speaks for; arrays of one shape, NaN where it is missing."""
        ...

    def evidence(self, observed: Observed) -> str:
        """What speaks for it, in words and numbers."""
        ...


def milliseconds(seconds: float) -> str:
    """A time per step, with three significant digits."""
    return f"{seconds * 1e3:.3g} ms"
