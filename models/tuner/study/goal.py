"""The goal of a search: its objectives, and the limits on outcomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Parameter
from crosswind.models.tuner.study.limit import Limit
from crosswind.models.tuner.study.objective import Objective

OBJECTIVES_MAX = 4  # the cost of the exact improvement has this exponent, and people cannot weigh more
LIMITS_MAX = 20


@dataclass(frozen=True)
class Goal:
    """One objective or several to trade off, and limits on the outcomes."""

    objectives: tuple[Objective, ...]
    limits: tuple[Limit, ...] = ()

    def __post_init__(self) -> None:
        _check_number("objectives", len(self.objectives), 1, OBJECTIVES_MAX)
        _check_number("limits", len(self.limits), 0, LIMITS_MAX)
        texts = [objective.expression.text for objective in self.objectives]
        repeated = next((text for text in texts if texts.count(text) > 1), None)
        if repeated is not None:
            raise InvalidInputError(f"objective {repeated!r} stands {texts.count(repeated)} times, expected it once")

    @classmethod
    def parse(cls, objectives: Sequence[str], limits: Sequence[str] = ()) -> Self:
        """Return the goal of texts, as `Objective.parse` and `Limit.parse` read them. Raises: InvalidInputError."""
        return cls(tuple(map(Objective.parse, objectives)), tuple(map(Limit.parse, limits)))

    def judge(self, configuration: Configuration, outcomes: Mapping[str, float]) -> "Judgement":
        """Return the objectives and limits of one trial's outcomes; an outcome hides a parameter of the same name.

        Raises: InvalidInputError where an outcome is missing, or something is no finite number.
        """
        values: dict[str, Parameter] = {**configuration, **outcomes}
        objectives = tuple(objective.value(values) for objective in self.objectives)
        return Judgement(objectives, tuple(limit.sides(values) for limit in self.limits))


@dataclass(frozen=True)
class Judgement:
    """The objectives of one trial, lower is better, and both sides of every limit, the first to stay below."""

    objectives: tuple[float, ...]
    sides: tuple[tuple[float, float], ...]

    @property
    def keeps_limits(self) -> bool:
        """Return whether every limit holds."""
        return all(smaller <= larger for smaller, larger in self.sides)


def _check_number(what: str, count: int, least: int, most: int) -> None:
    if not least <= count <= most:
        raise InvalidInputError(f"there are {count} {what}, expected {least} to {most}")
