"""A run that a verb asks about, and how a server is asked; nothing heavy is imported for it."""

import argparse
import json
import math
import os
from collections.abc import Mapping
from contextlib import closing
from importlib import import_module
from typing import Any

from crosswind.data.schema.errors import InvalidInputError, MalformedError, NotFoundError, UnavailableError
from crosswind.data.schema.trial import Configuration, Parameter
from crosswind.ingest.ship.client import Answer, Client
from crosswind.ingest.ship.token import ship_token
from crosswind.settings import Settings

SERVER = "CROSSWIND_SERVER"
OUTCOMES = {"step": "step_p50_seconds", "run": "run_seconds", "job": "job_seconds"}
OK, UNKNOWN, LATER = 200, 404, 500
INT64 = 2**63


def configure_run(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that name a run to come."""
    parser.add_argument("--workload", required=True, help="what will be run, or the name of its jobs")
    parser.add_argument("--ranks", type=int, help="how many ranks it will have; of jobs, nodes")
    parser.add_argument("--config", action="append", default=[], metavar="NAME=VALUE", help="a parameter's value")
    parser.add_argument("--system", help="where it will run (default: this system)")
    configure_server(parser)


def configure_server(parser: argparse.ArgumentParser) -> None:
    """Adds the argument that names a server."""
    parser.add_argument("--server", metavar="URL", help=f"ask this server, not the store here (default: ${SERVER})")


def server_of(arguments: argparse.Namespace) -> str | None:
    """The server that is meant; None is the store at hand."""
    return arguments.server or os.environ.get(SERVER) or None


def run_of(arguments: argparse.Namespace, settings: Settings, *, ranks: int | None = None) -> dict[str, Any]:
    """The run as the API takes it. Raises: InvalidInputError."""
    count = ranks if ranks is not None else arguments.ranks
    if count is None or count < 1:
        raise InvalidInputError(f"--ranks {'is missing' if count is None else count}: expected 1 or more")
    return {
        "workload": arguments.workload,
        "system": arguments.system or settings.system,
        "configuration": configuration_of(arguments.config),
        "world_size": count,
    }


def configuration_of(words: list[str]) -> Configuration:
    """The configuration that NAME=VALUE words give; numbers and booleans as in JSON. Raises: InvalidInputError."""
    configuration: dict[str, Parameter] = {}
    for word in words:
        name, separator, text = word.partition("=")
        if not separator or not name:
            raise InvalidInputError(f"--config {word[:60]!r}: expected NAME=VALUE")
        if name in configuration:
            raise InvalidInputError(f"--config {name} is given twice, expected once")
        configuration[name] = _value(word, text)
    return configuration


def get(server: str, path: str) -> Mapping[str, Any]:
    """Return what the server answers. Raises: InvalidInputError, NotFoundError, UnavailableError, MalformedError."""
    with closing(Client(server, ship_token())) as client:
        return _said(server, client.get(path))


def post(server: str, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the server answers. Raises: InvalidInputError, NotFoundError, UnavailableError, MalformedError."""
    with closing(Client(server, ship_token())) as client:
        content = json.dumps(body, allow_nan=False).encode()
        return _said(server, client.post(path, content, {"Content-Type": "application/json"}))


def _said(server: str, answer: Answer) -> Mapping[str, Any]:
    if answer.status == OK and answer.said:
        return answer.said
    if answer.status == OK:
        raise MalformedError(f"{server}: answered {answer.media_type}, expected a JSON object; is this its address?")
    detail = str(answer.said.get("detail") or f"status {answer.status}")
    if answer.status == UNKNOWN:
        raise NotFoundError(f"{server}: {detail}")
    if answer.status >= LATER:
        raise UnavailableError(f"{server}: {detail}")
    raise InvalidInputError(f"{server}: {detail}")


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


def at_hand(name: str, settings: Settings, asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the store here answers, by a function of `at_hand`, which is heavy to import."""
    answer: Mapping[str, Any] = getattr(import_module("crosswind.cli.at_hand"), name)(settings, asked)
    return answer
