"""The disturbance of a trial's run, which is then measured again rather than believed."""

from dataclasses import dataclass, field
from enum import StrEnum

from crosswind.data.schema.answers.fields import about


class DisturbanceBasis(StrEnum):
    """The grounds of a verdict, the surest first."""

    OWN_RUNS = "own_runs"  # other runs of the same configuration
    OTHER_RUNS = "other_runs"  # runs of other configurations, and its own ranks against each other
    NOTHING = "nothing"


@dataclass(frozen=True)
class LostTime:
    """The share of the run's time that one external cause took, with the ends of its interval."""

    cause: str
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Disturbance:
    """The verdict whether to repeat a trial rather than believe it, and why; `lost` has the largest share first."""

    run_id: str
    basis: DisturbanceBasis = field(metadata=about("the grounds, the surest first"))
    lost: tuple[LostTime, ...]
    is_disturbed: bool
    sentence: str
