"""`crosswind lake`: the size and holes of what is stored, its compaction, and a search for damaged files."""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from crosswind.cli.progress import Progress
from crosswind.cli.text.output import say, say_json, table
from crosswind.cli.verbs import compact
from crosswind.dashboards.wording import NONE, utc
from crosswind.settings import Settings

if TYPE_CHECKING:  # heavy
    from crosswind.data.lake.storage import Inventory
    from crosswind.data.lake.survey import SetSurvey
    from crosswind.data.store.store import Store

HEADINGS = ("set", "days", "files", "small", "rows", "MB", "oldest", "newest", "holes")
MEGABYTE = 1e6


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument(
        "action",
        choices=("status", "compact", "verify"),
        help="status: sizes and holes of every set; compact: few files of many; verify: read every file",
    )
    parser.epilog = "Exit code 1: a file is damaged, and named. All three are safe while a server runs."


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Does it; 1 when a file could not be read. Raises: UnavailableError."""
    if arguments.action == "compact":
        return compact.execute(arguments, settings)
    from crosswind.client.installed_store import open_store  # noqa: PLC0415 - heavy

    act = _status if arguments.action == "status" else _verify
    with open_store(settings) as store:
        return act(store, as_json=arguments.json)


def _status(store: "Store", *, as_json: bool) -> int:
    from crosswind.data.lake.survey import survey  # noqa: PLC0415 - heavy

    answer = survey(store.lake)
    if as_json:
        say_json(asdict(answer))
    elif answer.sets:
        say(table(HEADINGS, [_line(one) for one in answer.sets]))
    else:
        say("The lake holds no rows.")
    _say_besides(answer.inventory, as_json=as_json)
    return _reported(answer.problems, as_json=as_json)


def _line(one: "SetSurvey") -> tuple[str, ...]:
    times = (NONE if ns is None else utc(ns) for ns in (one.oldest_ns, one.newest_ns))
    sizes = (str(one.days), str(one.files), str(one.small_files), str(one.rows), f"{one.bytes / MEGABYTE:.1f}")
    return (one.name, *sizes, *times, str(len(one.holes)))


def _verify(store: "Store", *, as_json: bool) -> int:
    from crosswind.data.lake.verification import verify  # noqa: PLC0415 - heavy

    days = sum(len(store.lake.days(name)) for name in store.lake.sets())
    with Progress("reading", days, unit="days of a set") as progress:
        done = verify(store.lake, after_day=progress.advance)
    if as_json:
        say_json(asdict(done))
    else:
        say(f"{done.files} files with {done.rows} rows are whole, {len(done.problems)} problems.")
    _say_besides(done.inventory, as_json=as_json)
    return _reported(done.problems, as_json=as_json)


def _say_besides(inventory: "Inventory | None", *, as_json: bool) -> None:
    """Say what an object store holds that is no part of the lake."""
    if as_json or inventory is None:
        return
    if inventory.replaced:
        size = f"{inventory.replaced_bytes / MEGABYTE:.1f} MB"
        say(f"Besides, {inventory.replaced} objects ({size}) were replaced, and are removed after an hour.")
    if inventory.unnamed:
        size = f"{inventory.unnamed_bytes / MEGABYTE:.1f} MB"
        say(f"Besides, {inventory.unnamed} objects ({size}) are named by nobody: they are being written, or their")
        say("writers were killed; those are removed after a day.")


def _reported(problems: Iterable[str], *, as_json: bool) -> int:
    for problem in () if as_json else problems:
        sys.stderr.write(f"crosswind: {problem}\n")
    return 1 if problems else 0
