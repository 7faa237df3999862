"""What is known of an input before a trial: `--context`, and how it is kept with the trial.

A finished trial carries the numbers of its context as outcomes named `context.NAME`; one that failed has no outcomes,
and carries them as JSON at the end of its reason.
"""

import argparse
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from crosswind.cli.tune.where import desk_at
from crosswind.data.errors import InvalidInputError, UnavailableError
from crosswind.data.trial import ENDED, TrialRecord
from crosswind.models.tuner.desks import Lease
from crosswind.settings import Settings

Numbers: TypeAlias = Mapping[str, float]
VARIABLE = "CROSSWIND_TRIAL_CONTEXT"
PREFIX = "context."
IN_REASON = " context="
NUMBERS_MAX = 200


def configure_context(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Adds the argument."""
    parser.add_argument("--context", metavar="NAME=NUMBER,...|FILE.json", help=help_text)


def context_in(word: str) -> dict[str, float]:
    """The numbers of `size=1e6,density=0.01`, or of a JSON file's object, in the order of their names.

    Raises: InvalidInputError naming the number, UnavailableError when the file cannot be read.
    """
    told = context_of_json(_of_file(Path(word)) if word.endswith(".json") else _of_words(word))
    if not 1 <= len(told) <= NUMBERS_MAX:
        raise InvalidInputError(f"--context {word[:80]!r} has {len(told)} numbers, expected 1 to {NUMBERS_MAX}")
    return told


def context_told(arguments: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> dict[str, float]:
    """The context of the trial that is told of: as given, or as `next --format env` exported it; else none."""
    if arguments.context:
        return context_in(arguments.context)
    exported = environment.get(VARIABLE) if environment.get("CROSSWIND_TRIAL") == arguments.trial else None
    try:
        return context_of_json(json.loads(exported)) if exported else {}
    except ValueError as error:
        raise InvalidInputError(f"{VARIABLE} is {exported!r:.80}, expected a JSON object of numbers") from error


def as_text(context: Numbers) -> str:
    """The context as one line of JSON."""
    return json.dumps(dict(context), sort_keys=True)


def as_outcomes(context: Numbers) -> dict[str, float]:
    """The context as outcomes of a trial that was measured."""
    return {f"{PREFIX}{name}": value for name, value in context.items()}


def as_reason(reason: str, context: Numbers) -> str:
    """The context behind the reason why there is no objective."""
    return f"{reason}{IN_REASON}{as_text(context)}" if context else reason


def kept_context(told: TrialRecord) -> dict[str, float]:
    """The context that a trial carries; empty without one."""
    if told.outcomes:
        return {name[len(PREFIX) :]: told.outcomes[name] for name in sorted(told.outcomes) if name.startswith(PREFIX)}
    _, found, text = (told.reason or "").rpartition(IN_REASON)
    try:
        return context_of_json(json.loads(text)) if found else {}
    except (ValueError, InvalidInputError):  # the words of somebody else
        return {}


def context_of_json(value: object) -> dict[str, float]:
    """Finite numbers by name, in the order of their names. Raises: InvalidInputError."""
    if not isinstance(value, Mapping):
        raise InvalidInputError(f"context is {value!r:.80}, expected an object of numbers")
    return {str(name): _number(str(name), value[name]) for name in sorted(value)}


def suggest_for(
    context: Numbers, place: tuple[str, str], settings: Settings, asked: tuple[str, int, Lease]
) -> list[TrialRecord]:
    """Trials of (study, count, holder), chosen by the study's earlier trials with their contexts.

    Raises: InvalidInputError for a server, for a name that the study's contexts do not have or one that is missing, and
    for what `ContextTuner` refuses; NotFoundError.
    """
    if place[0] == "server":
        raise InvalidInputError(
            "--context: a server does not choose by context, expected --folder or the store at hand"
        )
    from crosswind.models.tuner.space import Space  # noqa: PLC0415 - heavy
    from crosswind.models.tuner.variants import Context, ContextTuner, Experience  # noqa: PLC0415 - heavy

    study, count, holder = asked
    with desk_at(place, settings) as desk:
        tried = [
            (told, known) for told in desk.trials(study) if told.trial.state in ENDED and (known := kept_context(told))
        ]
    check_names(context, [known for _, known in tried])
    experiences = [
        Experience(Context(as_text(known), known), told.trial.configuration, told.trial.objective)
        for told, known in tried
    ]

    def choosing(space: Space, seed: int) -> ContextTuner:
        return ContextTuner(space, seed, Context(as_text(context), context), experiences)

    with desk_at(place, settings, make_tuner=choosing) as desk:
        return desk.suggest(study, count, holder)


def check_names(context: Numbers, earlier: Sequence[Numbers]) -> None:
    """Refuses a context unlike the study's latest one. Raises: InvalidInputError naming the number."""
    if not earlier:
        return
    expected = ", ".join(sorted(earlier[-1]))
    for name in sorted(context.keys() ^ earlier[-1].keys()):
        fault = "is unknown" if name in context else "is missing"
        raise InvalidInputError(f"--context: {name} {fault}, expected {expected} as in the study's earlier trials")


def _of_words(word: str) -> dict[str, object]:
    pairs: Iterable[tuple[str, str, str]] = [each.partition("=") for each in word.split(",")]
    told: dict[str, object] = {}
    for name, equals, text in pairs:
        if not name.strip() or not equals or name.strip() in told:
            raise InvalidInputError(
                f"--context {word[:80]!r}: expected NAME=NUMBER,... with each name once, or FILE.json"
            )
        told[name.strip()] = text.strip()
    return told


def _of_file(path: Path) -> dict[str, object]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnavailableError(f"--context {path}: {error.strerror}") from error
    except ValueError as error:
        raise InvalidInputError(f"--context {path}: expected a JSON object of numbers: {error}") from error
    if not isinstance(value, dict):
        raise InvalidInputError(f"--context {path}: {value!r:.80}, expected a JSON object of numbers")
    return value


def _number(name: str, value: object) -> float:
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInputError(f"context {name} is {value!r:.80}, expected a finite number")
    return number
