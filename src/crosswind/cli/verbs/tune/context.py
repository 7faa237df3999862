"""The context of a trial on the command line: `--context`, and what `next` exports of it."""

import argparse
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from crosswind.cli.verbs.tune.where import remote_service, service_at
from crosswind.data.schema.context import NUMBERS_MAX, Numbers, context_from_json
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.trial import TrialRecord
from crosswind.data.yaml_text import parsed
from crosswind.models.tuner.service.service import Lease, Suggest
from crosswind.models.tuner.variants.for_context import tuner_for_context
from crosswind.settings import Settings

VARIABLE = "CROSSWIND_TRIAL_CONTEXT"
ENDINGS = (".json", ".yaml", ".yml")


def configure_context(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Adds the argument."""
    parser.add_argument("--context", metavar="NAME=NUMBER,...|FILE.json|FILE.yaml", help=help_text)


def context_in(word: str) -> dict[str, float]:
    """The numbers of `size=1e6,density=0.01`, or of a JSON or YAML file, in the order of their names.

    Raises: InvalidInputError naming the number, UnavailableError when the file cannot be read.
    """
    numbers = context_from_json(_of_file(Path(word)) if word.endswith(ENDINGS) else _of_words(word))
    if not 1 <= len(numbers) <= NUMBERS_MAX:
        raise InvalidInputError(f"--context {word[:80]!r} has {len(numbers)} numbers, expected 1 to {NUMBERS_MAX}")
    return numbers


def reported_context(arguments: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> dict[str, float]:
    """The context of the trial that is reported: as given, or as `next --format env` exported it; else none."""
    if arguments.context:
        return context_in(arguments.context)
    exported = environment.get(VARIABLE) if environment.get("CROSSWIND_TRIAL") == arguments.trial else None
    try:
        return context_from_json(json.loads(exported)) if exported else {}
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"{VARIABLE} is {exported!r:.80}, expected a JSON object of numbers") from error


def suggesting(context: Numbers, place: tuple[str, str], settings: Settings) -> Suggest:
    """Asks that place for trials, chosen by the study's earlier trials with their contexts; again each time.

    It raises: InvalidInputError as `tuner_for_context`; NotFoundError, UnavailableError.
    """

    def suggest(study: str, count: int, lease: Lease) -> list[TrialRecord]:
        kind, address = place
        if kind == "server":
            with remote_service(address) as remote:
                return remote.suggest(study, count, lease, context=context)
        with service_at(place, settings) as service:
            make_tuner = tuner_for_context(context, service.trials(study))
        with service_at(place, settings, make_tuner=make_tuner) as service:
            return service.suggest(study, count, lease)

    return suggest


def _of_words(word: str) -> dict[str, object]:
    pairs: Iterable[tuple[str, str, str]] = [pair.partition("=") for pair in word.split(",")]
    numbers: dict[str, object] = {}
    for name, equals, text in pairs:
        if not name.strip() or not equals or name.strip() in numbers:
            raise InvalidInputError(
                f"--context {word[:80]!r}: expected NAME=NUMBER,... with each name once, or FILE.json or FILE.yaml"
            )
        numbers[name.strip()] = text.strip()
    return numbers


def _of_file(path: Path) -> dict[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
        value = json.loads(text) if path.suffix == ".json" else parsed(text)
    except OSError as error:
        raise UnavailableError(f"--context {path}: {error.strerror}") from error
    except ImportError as error:
        raise UnavailableError(f"--context {path}: PyYAML is needed: pip install 'crosswind[server]'") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"--context {path}: expected an object of numbers: {error}") from error
    if not isinstance(value, dict):
        raise InvalidInputError(f"--context {path}: {value!r:.80}, expected an object of numbers")
    return value
