"""The verdict on a trial whose run may have been disturbed."""

from dataclasses import dataclass
from enum import StrEnum

from crosswind.data.schema.errors import InvalidInputError


class Basis(StrEnum):
    """The grounds of a verdict, the surest first."""

    OWN_RUNS = "own_runs"  # other runs of the same configuration
    OTHER_RUNS = "other_runs"  # runs of other configurations, and its own ranks compared
    NOTHING = "nothing"


@dataclass(frozen=True)
class Lost:
    """The share of the run's time that one external cause took, in [0, 1], with the ends of its interval."""

    cause: str
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Corrected:
    """An objective without what was lost, with the ends of its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Disturbance:
    """The verdict whether to repeat a trial rather than believe it, and why; `lost` has the largest share first."""

    run_id: str
    basis: Basis
    lost: tuple[Lost, ...]
    is_disturbed: bool
    sentence: str

    def corrected(self, objective: float) -> Corrected:
        """Return the objective without the losses, for when no repeat is left; it grows with the time of a step.

        A negative one counts as a negated rate, which falls with it. Undisturbed, it is as measured; the interval is
        that of the shares lost and leaves out other noise. Raises: InvalidInputError unless finite.
        """
        if not abs(objective) < float("inf"):
            raise InvalidInputError(f"objective is {objective}, expected a finite number")
        if not self.is_disturbed:
            return Corrected(objective, objective, objective)
        shares = [sum(getattr(loss, name) for loss in self.lost) for name in ("ratio", "high", "low")]
        left = [1 - min(share, MOST_LOST) for share in shares]
        value, *ends = (objective * share if objective >= 0 else objective / share for share in left)
        return Corrected(value, min(ends), max(ends))


MOST_LOST = 0.95  # of a run's time: something was its own
