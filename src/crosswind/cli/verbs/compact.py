"""`crosswind compact`: merges the many files that arrive into few, now; a server does so by itself."""

import argparse
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from crosswind.cli.progress import Progress
from crosswind.cli.text.output import say, say_json
from crosswind.data.schema.errors import ConflictError, UnavailableError
from crosswind.settings import Settings

if TYPE_CHECKING:  # heavy
    from crosswind.data.lake.compaction import Compacted
    from crosswind.data.lake.lake import Lake


def configure(parser: argparse.ArgumentParser) -> None:
    """The verb has no arguments of its own."""
    parser.epilog = "Rows do not change; files of the last minute are left for later. Safe while a server runs."


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Does it; 1 when a file could not be read. Raises: UnavailableError, also while another process does it."""
    from crosswind.client.installed_store import open_store  # noqa: PLC0415 - heavy

    with open_store(settings) as store:
        done = _compacted(store.lake)
    if arguments.json:
        say_json(asdict(done))
    else:
        _print(done)
    return 1 if done.problems else 0


def _compacted(lake: "Lake") -> "Compacted":
    from crosswind.data.lake.compaction import compact, days_of  # noqa: PLC0415 - heavy

    with Progress("compacting", days_of(lake), unit="days of a set") as progress:

        def count_day() -> bool:
            progress.advance()
            return False

        try:
            return compact(lake, is_over=count_day)
        except ConflictError as error:
            raise UnavailableError(str(error)) from error


def _print(done: "Compacted") -> None:
    say(f"{done.files_before} files became {done.files_after}; {done.rows} rows were rewritten.")
    if done.summaries:
        say(f"Summaries of {done.summaries} runs were brought up to date.")
    for problem in done.problems:
        sys.stderr.write(f"crosswind: {problem}\n")
