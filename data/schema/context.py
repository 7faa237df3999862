"""Contexts of trials: numbers that describe the input for which a configuration was chosen.

Stores, files and `/v1` have no column for them. A complete trial carries its context as outcomes named `context.NAME`;
one that failed has no outcomes, and carries it as JSON at the end of its reason.
"""

import json
import math
from collections.abc import Mapping
from typing import TypeAlias

from crosswind.data.schema.errors import InvalidInputError

Numbers: TypeAlias = Mapping[str, float]
PREFIX = "context."
IN_REASON = " context="
NUMBERS_MAX = 200
NAME_MAX = 192  # characters: with its prefix it is an outcome's name
REASON_MAX = 4000  # characters that every service takes


def context_from_json(value: object) -> dict[str, float]:
    """Return finite numbers by name, in the order of their names. Raises: InvalidInputError."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"context is {value!r:.80}, expected an object of numbers")
    for name in value:
        if not 1 <= len(str(name)) <= NAME_MAX:
            raise InvalidInputError(f"context name {str(name)[:40]!r}: expected 1 to {NAME_MAX} characters")
    return {str(name): _number(str(name), value[name]) for name in sorted(value)}


def context_text(context: Numbers) -> str:
    """Return the context as one line of JSON."""
    return json.dumps(dict(context), sort_keys=True)


def outcomes_with(outcomes: Numbers, context: Numbers) -> dict[str, float]:
    """Return the outcomes with the context among them, as a complete trial carries it."""
    return {**outcomes, **{f"{PREFIX}{name}": value for name, value in context.items()}}


def split_outcomes(outcomes: Numbers) -> tuple[dict[str, float], dict[str, float]]:
    """Return what was measured, and the context that is among the outcomes."""
    context = {name[len(PREFIX) :]: outcomes[name] for name in sorted(outcomes) if name.startswith(PREFIX)}
    return {name: value for name, value in outcomes.items() if not name.startswith(PREFIX)}, context


def reason_with(reason: str, context: Numbers) -> str:
    """Return the reason with the context behind it, as a trial without outcomes carries it."""
    is_there = not context or split_reason(reason)[1] == context
    return reason if is_there else f"{reason}{IN_REASON}{context_text(context)}"


def fitting_reason(reason: str, context: Numbers) -> str:
    """Return the same, the reason cut to REASON_MAX characters for both; the reason alone where there is no room."""
    room = REASON_MAX - len(reason_with("", context))
    return reason_with(reason[:room], context) if room > 0 else reason[:REASON_MAX]


def split_reason(reason: str) -> tuple[str, dict[str, float]]:
    """Return the reason and the context behind it; one that we would write otherwise stays in the reason, too."""
    text, separator, behind = reason.rpartition(IN_REASON)
    try:
        context = context_from_json(json.loads(behind)) if separator else {}
    except (ValueError, RecursionError, InvalidInputError):  # somebody else's words
        return reason, {}
    return (text if context and context_text(context) == behind else reason), context


def _number(name: str, value: object) -> float:
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInputError(f"context {name} is {value!r:.80}, expected a finite number")
    return number
