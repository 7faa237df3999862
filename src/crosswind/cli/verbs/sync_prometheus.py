"""`crosswind sync prometheus URL`: samples of a Prometheus server into the store, once or again and again."""

import argparse
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from crosswind.cli.moment import moment_of
from crosswind.cli.text.output import printable, say, say_json
from crosswind.data.schema.errors import InvalidInputError, ProjectError
from crosswind.ingest.agent.agent import stop_on_signals
from crosswind.settings import Settings

SOURCE = "prometheus"
TOKEN = "CROSSWIND_PROMETHEUS_TOKEN"  # noqa: S105  the name of a variable
SHORTEST_SECONDS = 5.0  # Prometheus has other things to do


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that only Prometheus has."""
    parser.add_argument(
        "--match",
        action="append",
        metavar="SELECTOR",
        help="prometheus: such series, e.g. '{job=\"node\"}' (again: more)",
    )
    parser.add_argument("--until", metavar="TIME", help="prometheus: up to then (default: now)")
    parser.add_argument(
        "--step",
        type=float,
        metavar="SECONDS",
        help="prometheus: values at such steps (default: every sample, as scraped)",
    )


def is_meant(words: Sequence[str]) -> bool:
    """Return whether the first word means the source, not a folder of that name. Raises: InvalidInputError."""
    if SOURCE not in words[:1]:
        return False
    if len(words) != 2:
        raise InvalidInputError(f"{SOURCE}: expected one URL behind it, such as http://host:9090")
    return True


def refuse_elsewhere(arguments: argparse.Namespace) -> None:
    """Refuses arguments that only Prometheus has. Raises: InvalidInputError."""
    for name in ("match", "until", "step"):
        if getattr(arguments, name) is not None:
            raise InvalidInputError(f"--{name} is for `crosswind sync {SOURCE} URL`")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Pull once, or until stopped. Raises: UnavailableError when the server does not answer."""
    if arguments.to:
        raise InvalidInputError("--to: samples are stored here; run this where the server's store is")
    if arguments.every is not None and arguments.every < SHORTEST_SECONDS:
        raise InvalidInputError(f"--every {arguments.every:g}: expected {SHORTEST_SECONDS:g} seconds or more")
    if arguments.step is not None and not 1 <= arguments.step <= 86_400:
        raise InvalidInputError(f"--step {arguments.step:g}: expected 1 to 86400 seconds")
    pull = _puller(arguments, settings)
    pull()
    if arguments.every is not None:
        _repeat(pull, arguments.every, as_json=arguments.json)
    return 0


def _puller(arguments: argparse.Namespace, settings: Settings) -> Callable[[], None]:
    from crosswind.client.installed_store import open_store  # noqa: PLC0415 - sending spools needs no store
    from crosswind.ingest.series.pull import EVERYTHING, Pulled, Puller, Wanted  # noqa: PLC0415
    from crosswind.ingest.series.query import Server  # noqa: PLC0415

    url = arguments.paths[1]
    server = Server(url, os.environ.get(TOKEN))
    step_ms = None if arguments.step is None else round(arguments.step * 1000)
    wanted = Wanted(tuple(arguments.match or [EVERYTHING]), step_ms)
    since, until = _milliseconds(arguments.since, "--since"), _milliseconds(arguments.until, "--until")

    def pull() -> None:
        with open_store(settings) as store:
            pulled: Pulled = Puller(store, settings.system, server, wanted).pull(since, until)
        if arguments.json:
            say_json(asdict(pulled))
            return
        span = " to ".join(_moment(time_ms) for time_ms in (pulled.since_ms, max(pulled.since_ms, pulled.until_ms)))
        say(
            printable(
                f"{url}: {pulled.samples} samples of {span} UTC as {pulled.rows} rows, {pulled.windows} questions"
            )
        )
        for note in pulled.notes:
            say(printable(f"  note: {note}"))

    return pull


def _milliseconds(text: str | None, option: str) -> int | None:
    return None if text is None else moment_of(text, time.time(), option=option) * 1000


def _moment(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def _repeat(pull: Callable[[], None], seconds: float, *, as_json: bool) -> None:
    stop, last_problem = stop_on_signals(), ""
    while not stop.wait(seconds):
        try:
            pull()
            last_problem = ""
        except ProjectError as error:  # a server or a database that is away for a while
            if str(error) != last_problem:
                say_json({"problem": str(error)}) if as_json else say(printable(f"problem: {error}"))
            last_problem = str(error)
