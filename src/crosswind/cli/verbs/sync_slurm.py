"""`crosswind sync slurm`: jobs of Slurm's accounting into the store, once or again and again."""

import argparse
import random
import shutil
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from crosswind.cli.moment import moment_of
from crosswind.cli.text.output import printable, say, say_json
from crosswind.data.schema.errors import InvalidInputError, ProjectError, UnavailableError
from crosswind.ingest.agent.agent import stop_on_signals
from crosswind.settings import Settings

SOURCE = "slurm"
SHORTEST_SECONDS = 10.0  # every query costs Slurm's one database


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that Slurm has."""
    parser.add_argument(
        "--since",
        metavar="TIME",
        help="slurm, prometheus: from then on, such as 2026-11-01 or 7d, a week ago (default: where it was)",
    )


def is_meant(words: Sequence[str]) -> bool:
    """Return whether the first word means the source, not a folder of that name. Raises: InvalidInputError."""
    if SOURCE not in words[:1]:
        return False
    if len(words) > 1:
        raise InvalidInputError(
            f"{words[1]!r} after {SOURCE}: expected no folder; for the folder {SOURCE}, say ./{SOURCE}"
        )
    return True


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Query once, or until stopped. Raises: UnavailableError when sacct is absent or does not answer."""
    if arguments.to:
        raise InvalidInputError("--to: jobs are stored here; run this where the server's store is")
    if arguments.every is not None and arguments.every < SHORTEST_SECONDS:
        raise InvalidInputError(f"--every {arguments.every:g}: expected {SHORTEST_SECONDS:g} seconds or more for Slurm")
    since = None if arguments.since is None else moment_of(arguments.since, time.time())
    if arguments.every is None:
        _poll(settings, since, threading.Event(), as_json=arguments.json)
        return 0
    _repeat(arguments, settings, since)
    return 0


def _poll(settings: Settings, since: int | None, stop: threading.Event, *, as_json: bool) -> None:
    from crosswind.client.installed_store import open_store  # noqa: PLC0415 - sending spools needs no store
    from crosswind.ingest.load.slurm_poll import Poller, Sacct  # noqa: PLC0415

    with open_store(settings) as store:
        polled = Poller(store, settings.system, Sacct(stop=stop)).poll(since)
    if as_json:
        say_json(polled)
        return
    start = datetime.fromtimestamp(polled.since_seconds, UTC)
    answers = f"{polled.questions} answers of Slurm about {settings.system} since {start:%Y-%m-%d %H:%M} UTC"
    say(f"{answers}: {polled.accounts} accounts of jobs, {polled.changed} new or changed")
    for report in polled.reports:
        for skipped in report.quoted:
            say(printable(f"  line {skipped.line} left out: {skipped.reason}: {skipped.text}"))


def _repeat(arguments: argparse.Namespace, settings: Settings, since: int | None) -> None:
    from crosswind.ingest.load.slurm_poll import ABSENT, delay_seconds  # noqa: PLC0415

    if shutil.which("sacct") is None:  # that does not pass with time
        raise UnavailableError(ABSENT.format("sacct"))
    stop, failures, chance, last_problem = stop_on_signals(), 0, random.Random(), ""  # noqa: S311 - jitter
    while not stop.is_set():
        try:
            _poll(settings, since, stop, as_json=arguments.json)
            since, failures, last_problem = None, 0, ""
        except ProjectError as error:  # a database that is away for a while
            failures += 1
            if str(error) != last_problem and not stop.is_set():
                _print_problem(str(error), as_json=arguments.json)
            last_problem = str(error)
        stop.wait(delay_seconds(arguments.every, failures, chance))


def _print_problem(problem: str, *, as_json: bool) -> None:
    if as_json:
        say_json({"problem": problem})
    else:
        say(printable(f"problem: {problem}"))
