"""The objective of a trial from what came of its run."""

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Study

if TYPE_CHECKING:
    from crosswind.models.tuner.space.expression import Expression

NAME = re.compile(r"[A-Za-z_][\w.]*", re.ASCII)


def judged(study: Study, configuration: Configuration, outcomes: Mapping[str, float]) -> float:
    """The objective, lower is better: an outcome by its name, or an expression of outcomes and parameters.

    Raises: InvalidInputError when it is not among the outcomes, or no finite number.
    """
    value = outcomes.get(study.objective)
    if value is None and not NAME.fullmatch(study.objective):
        value = _computed(study.objective, {**configuration, **outcomes})
    if value is None:
        names = ", ".join(sorted(outcomes)) or "nothing"
        raise InvalidInputError(
            f"objective {study.objective} is not among what came of the run ({names})"
            ": --objective-from or --objective-pattern says where the program tells it"
        )
    if not math.isfinite(value):
        raise InvalidInputError(f"objective {study.objective} is {value}, expected a finite number")
    return signed(study, value)


def is_reported(study: Study, configuration: Configuration, outcomes: Mapping[str, float]) -> bool:
    """Return whether the outcomes tell the objective, finite or not."""
    if study.objective in outcomes or NAME.fullmatch(study.objective):
        return study.objective in outcomes
    return _parsed(study.objective).names <= {*configuration, *outcomes}


def signed(study: Study, value: float) -> float:
    """The number as the study keeps it, lower is better; or back again."""
    return -value if study.is_maximised else value


@lru_cache(maxsize=16)
def _parsed(text: str) -> "Expression":
    """The expression, read once: a trial's steps are judged by thousands of levels again and again."""
    from crosswind.models.tuner.space.expression import Expression  # noqa: PLC0415 - models are heavy to import

    return Expression.parse(text)


def _computed(text: str, values: Mapping[str, int | float | str | bool]) -> float | None:
    value = _parsed(text).value(values)
    return None if isinstance(value, str) else float(value)
