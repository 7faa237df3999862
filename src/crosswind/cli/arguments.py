"""Arguments that name a run to come and a server."""

import argparse
import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from crosswind.cli.moment import EARLIEST
from crosswind.client.connection import SERVER
from crosswind.client.protocol import Client
from crosswind.client.run_names import RUN_HELP
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.facts import NUMBERS, Facts
from crosswind.data.schema.question import LikeRun, Question
from crosswind.data.schema.trial import Configuration, Parameter
from crosswind.settings import Settings

if TYPE_CHECKING:
    from crosswind.client.local import Local

OUTCOMES = {"step": Outcome.STEP, "run": Outcome.RUN, "job": Outcome.JOB}
INT64 = 2**63


def configure_run(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that name a run to come."""
    parser.add_argument("--like", metavar="RUN", help=f"as this stored run, {RUN_HELP}, in all that is not given here")
    parser.add_argument("--workload", help="what will be run, or the name of its jobs")
    parser.add_argument("--ranks", type=int, help="how many ranks it will have; of jobs, nodes")
    parser.add_argument("--config", action="append", default=[], metavar="NAME=VALUE", help="a parameter's value")
    parser.add_argument("--system", help="where it will run (default: this system, or that of the run that it is like)")
    parser.add_argument(
        "--fact",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of its system or software, such as accelerator=H200 (default: as the newest run there)",
    )
    parser.add_argument("--date", metavar="YYYY-MM-DD", help="when it will run (default: as the newest run)")
    configure_server(parser)


def configure_server(parser: argparse.ArgumentParser) -> None:
    """Adds the argument that names a server."""
    parser.add_argument("--server", metavar="URL", help=f"use this server, not the store here (default: ${SERVER})")


def local(client: Client, option: str) -> "Local":
    """Return the client if it is of this machine's store, as an option needs. Raises: InvalidInputError otherwise."""
    from crosswind.client.local import Local  # noqa: PLC0415 - heavy

    if not isinstance(client, Local):
        raise InvalidInputError(f"{option}: expected without a server, in the store of this machine")
    return client


def question_of(arguments: argparse.Namespace, settings: Settings, *, ranks: int | None = None) -> Question | LikeRun:
    """Return the run that the arguments name. Raises: InvalidInputError."""
    count = arguments.ranks if ranks is None else ranks
    if count is not None and count < 1:
        raise InvalidInputError(f"--ranks {count}: expected 1 or more")
    configuration, facts = configuration_of(arguments.config), facts_of(arguments.fact)
    started_ns = None if arguments.date is None else _nanoseconds(arguments.date)
    if arguments.like is not None:
        place = (arguments.workload, arguments.system)
        return LikeRun(arguments.like, *place, configuration, count, facts=facts, started_ns=started_ns)
    if arguments.workload is None:
        raise InvalidInputError("--workload is missing: expected what will be run, or a stored run by --like")
    if count is None:
        raise InvalidInputError("--ranks is missing: expected 1 or more")
    system = arguments.system or settings.system
    return Question(arguments.workload, system, configuration, count, facts=facts, started_ns=started_ns)


def configuration_of(words: list[str]) -> Configuration:
    """Return the configuration of NAME=VALUE words; numbers and booleans as in JSON. Raises: InvalidInputError."""
    return {name: _value(f"{name}={text}", text) for name, text in _pairs(words, "--config").items()}


def facts_of(words: list[str]) -> Facts:
    """Return the facts of NAME=VALUE words; counts and bytes are numbers. Raises: InvalidInputError."""
    pairs = _pairs(words, "--fact")
    return Facts.of({name: _value(text, text) if name in NUMBERS else text for name, text in pairs.items()})


def _pairs(words: list[str], option: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in words:
        name, separator, text = word.partition("=")
        if not separator or not name:
            raise InvalidInputError(f"{option} {word[:60]!r}: expected NAME=VALUE")
        if name in pairs:
            raise InvalidInputError(f"{option} {name} is given twice, expected once")
        pairs[name] = text
    return pairs


def _nanoseconds(text: str) -> int:
    try:
        seconds = datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        seconds = -1
    if seconds < EARLIEST:
        raise InvalidInputError(f"--date {text!r:.40}: expected a day from 2001 on, such as 2026-11-01")
    return int(seconds) * 10**9


def _value(word: str, text: str) -> Parameter:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if not isinstance(value, int | float):  # a boolean is an int
        return text
    if not (math.isfinite(value) if isinstance(value, float) else -INT64 <= value < INT64):
        raise InvalidInputError(f"--config {word[:60]!r}: expected a finite number of at most 64 bits")
    return value
