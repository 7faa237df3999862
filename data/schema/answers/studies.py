"""Answers about studies: verdicts whether external causes disturbed a trial, and the sources of a study."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any, Self

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


@dataclass(frozen=True)
class StudySource:
    """Earlier measurements that a study's search learns from, and why."""

    name: str
    why: str
    weight: float | None = field(
        default=None, metadata=about("the trust in it at the newest suggestion; null before, or where it is not used")
    )


@dataclass(frozen=True)
class SourceLeftOut:
    """Earlier measurements that were considered and left out, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class StudySources:
    """The sources of a study, the nearest first, and what was left out; the weights sum to 1."""

    used: tuple[StudySource, ...] = ()
    left_out: tuple[SourceLeftOut, ...] = ()
    others_left_out: int = field(default=0, metadata=about("further ones that are not listed"))
    own_weight: float | None = field(default=None, metadata=about("the trust in the study's own model"))

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> Self:
        """Return the sources that `as_json` wrote. Raises: KeyError, TypeError, AttributeError."""
        return cls(
            tuple(StudySource(one["name"], one["why"], one.get("weight")) for one in fields["used"]),
            tuple(SourceLeftOut(one["name"], one["reason"]) for one in fields["left_out"]),
            int(fields.get("others_left_out", 0)),
            fields.get("own_weight"),
        )

    def as_json(self) -> dict[str, Any]:
        """Return the sources as plain JSON values."""
        fields = asdict(self)
        return {**fields, "used": list(fields["used"]), "left_out": list(fields["left_out"])}

    def weighed(self, weights: Mapping[str, float], own: str) -> Self:
        """Return the sources with these weights; that of the study's own model has the name `own`."""
        used = tuple(replace(source, weight=weights.get(source.name)) for source in self.used)
        return replace(self, used=used, own_weight=weights.get(own))
