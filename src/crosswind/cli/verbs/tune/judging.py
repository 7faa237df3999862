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


ADVICE = "--objective-from or --objective-pattern says where the program tells it"


def judged(study: Study, configuration: Configuration, outcomes: Mapping[str, float], advice: str = ADVICE) -> float:
    """The objective, lower is better: an outcome by its name, or an expression of outcomes and parameters.

    Raises: InvalidInputError when it is no finite number, or not among the outcomes: with the advice then.
    """
    value = outcomes.get(study.objective)
    if value is None and not NAME.fullmatch(study.objective):
        value = _computed(study.objective, {**configuration, **outcomes})
    if value is None:
        names = ", ".join(sorted(outcomes)) or "nothing"
        raise InvalidInputError(f"objective {study.objective} is not among what came of the run ({names}): {advice}")
    if not math.isfinite(value):
        raise InvalidInputError(f"objective {study.objective} is {value}, expected a finite number")
    return study.signed(value)


def is_reported(study: Study, configuration: Configuration, outcomes: Mapping[str, float]) -> bool:
    """Return whether the outcomes tell the objective, finite or not."""
    if study.objective in outcomes or NAME.fullmatch(study.objective):
        return study.objective in outcomes
    return _parsed(study.objective).names <= {*configuration, *outcomes}


@lru_cache(maxsize=16)
def _parsed(text: str) -> "Expression":
    """The expression, read once: a trial's steps are judged by thousands of levels again and again."""
    from crosswind.models.tuner.space.expression import Expression  # noqa: PLC0415 - models are heavy to import

    return Expression.parse(text)


def _computed(text: str, values: Mapping[str, int | float | str | bool]) -> float | None:
    value = _parsed(text).value(values)
    return None if isinstance(value, str) else float(value)
