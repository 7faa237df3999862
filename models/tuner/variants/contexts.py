"""The context of a trial, what is known of its input beforehand, and how it is kept with the trial.

A finished trial carries the numbers of its context as outcomes named `context.NAME`; one that failed has no outcomes,
and carries them as JSON at the end of its reason.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import ENDED, TrialRecord

if TYPE_CHECKING:
    from crosswind.models.tuner.search.search import MakeTuner
    from crosswind.models.tuner.space.space import Space
    from crosswind.models.tuner.variants.context_tuner import ContextTuner

Numbers: TypeAlias = Mapping[str, float]
PREFIX = "context."
IN_REASON = " context="
NUMBERS_MAX = 200
NAME_MAX = 192  # characters: with its prefix it is an outcome's name
REASON_MAX = 4000  # characters that every service takes


def as_text(context: Numbers) -> str:
    """The context as one line of JSON."""
    return json.dumps(dict(context), sort_keys=True)


def as_outcomes(context: Numbers) -> dict[str, float]:
    """The context as outcomes of a trial that was measured."""
    return {f"{PREFIX}{name}": value for name, value in context.items()}


def as_reason(reason: str, context: Numbers) -> str:
    """The context behind the reason why there is no objective; the reason alone where both are too long."""
    behind = f"{IN_REASON}{as_text(context)}" if context else ""
    if len(behind) >= REASON_MAX:
        return reason[:REASON_MAX]
    return f"{reason[: REASON_MAX - len(behind)]}{behind}"


def kept_context(record: TrialRecord) -> dict[str, float]:
    """The context that a trial carries; empty without one."""
    if record.outcomes:
        return {
            name[len(PREFIX) :]: record.outcomes[name] for name in sorted(record.outcomes) if name.startswith(PREFIX)
        }
    _, separator, text = (record.reason or "").rpartition(IN_REASON)
    try:
        return context_of_json(json.loads(text)) if separator else {}
    except (ValueError, RecursionError, InvalidInputError):  # the words of somebody else
        return {}


def context_of_json(value: object) -> dict[str, float]:
    """Finite numbers by name, in the order of their names. Raises: InvalidInputError."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"context is {value!r:.80}, expected an object of numbers")
    for name in value:
        if not 1 <= len(str(name)) <= NAME_MAX:
            raise InvalidInputError(f"context name {str(name)[:40]!r}: expected 1 to {NAME_MAX} characters")
    return {str(name): _number(str(name), value[name]) for name in sorted(value)}


def choosing_by(context: Numbers, records: Sequence[TrialRecord]) -> "MakeTuner":
    """Makes tuners that choose for this context by a study's earlier trials with theirs.

    Raises: InvalidInputError for a name that the study's contexts do not have or one that is missing, and for what
    `ContextTuner` refuses.
    """
    from crosswind.models.tuner.variants.context_tuner import ContextTuner  # noqa: PLC0415 - heavy
    from crosswind.models.tuner.variants.experience import Context, Experience  # noqa: PLC0415 - heavy

    tried = [(record, kept) for record in records if record.trial.state in ENDED and (kept := kept_context(record))]
    _check_names(context, [carried for _, carried in tried])
    experiences = [
        Experience(Context(as_text(carried), carried), record.trial.configuration, record.trial.objective)
        for record, carried in tried
    ]

    def choosing(space: "Space", seed: int) -> "ContextTuner":
        return ContextTuner(space, seed, Context(as_text(context), context), experiences)

    return choosing


def _check_names(context: Numbers, earlier: Sequence[Numbers]) -> None:
    """Refuses a context unlike the study's latest one. Raises: InvalidInputError naming the number."""
    if not earlier:
        return
    expected = ", ".join(sorted(earlier[-1]))
    for name in sorted(context.keys() ^ earlier[-1].keys()):
        fault = "is unknown" if name in context else "is missing"
        raise InvalidInputError(f"context: {name} {fault}, expected {expected} as in the study's earlier trials")


def _number(name: str, value: object) -> float:
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInputError(f"context {name} is {value!r:.80}, expected a finite number")
    return number
