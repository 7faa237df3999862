"""`crosswind lake`: the size and holes of what is stored, its compaction and retirement, and a search for damage."""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from crosswind.cli.progress import Progress
from crosswind.cli.text.output import say, say_json, table
from crosswind.cli.verbs import compact
from crosswind.dashboards.wording import NONE, utc
from crosswind.data.schema.errors import ConflictError, InvalidInputError, UnavailableError
from crosswind.data.schema.keeping import EVERYTHING, EXAMPLE, KEEP, KeepPolicy
from crosswind.settings import Settings

if TYPE_CHECKING:  # heavy
    from crosswind.data.lake.retention.upkeep import Upkeep
    from crosswind.data.lake.storage import Inventory
    from crosswind.data.lake.survey import SetSurvey
    from crosswind.data.store.store import Store

HEADINGS = ("set", "days", "files", "small", "rows", "MB", "oldest", "newest", "holes")
MEGABYTE = 1e6


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    parser.add_argument(
        "action",
        choices=("status", "compact", "retire", "verify"),
        help="status: sizes and holes of every set; compact: few files of many; retire: roll up old samples of nodes, "
        "and remove those that were, as CROSSWIND_KEEP says; verify: read every file",
    )
    parser.add_argument("--keep", metavar="POLICY", help=f"in place of {KEEP}, such as {EXAMPLE}")
    parser.add_argument("--dry-run", action="store_true", help="with retire: say what would be done")
    parser.epilog = "Exit code 1: a file is damaged, and named. All of them are safe while a server runs."


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Does it; 1 when a file could not be read. Raises: UnavailableError, InvalidInputError."""
    if arguments.dry_run and arguments.action != "retire":
        raise InvalidInputError(f"--dry-run: expected with retire, and not with {arguments.action}")
    if arguments.keep is not None and arguments.action not in ("retire", "status"):
        raise InvalidInputError(f"--keep: expected with retire or status, and not with {arguments.action}")
    if arguments.action == "compact":
        return compact.execute(arguments, settings)
    from crosswind.client.installed_store import open_store  # noqa: PLC0415 - heavy

    policy = settings.kept if arguments.keep is None else KeepPolicy.of(arguments.keep)
    with open_store(settings) as store:
        if arguments.action == "retire":
            return _retire(store, policy, dry_run=arguments.dry_run, as_json=arguments.json)
        if arguments.action == "verify":
            return _verify(store, as_json=arguments.json)
        return _status(store, policy, settings, as_json=arguments.json)


def _status(store: "Store", policy: KeepPolicy, settings: Settings, *, as_json: bool) -> int:
    from crosswind.data.lake.retention.upkeep import expected  # noqa: PLC0415 - heavy
    from crosswind.data.lake.survey import survey  # noqa: PLC0415
    from crosswind.data.traces.cache import TraceCache  # noqa: PLC0415
    from crosswind.ingest.load.load_traces import CACHE  # noqa: PLC0415

    answer, due = survey(store.lake), expected(store.lake, policy)
    cached, limit = TraceCache(settings.home / CACHE).size_bytes, settings.trace_cache_bytes
    if as_json:
        traces = {"bytes": cached, "limit_bytes": limit}
        say_json({**asdict(answer), "due": asdict(due), "trace_cache": traces})
    elif answer.sets:
        say(table(HEADINGS, [_line(one) for one in answer.sets]))
        say(f"Due by policy: {_sentence(due)}" if policy != EVERYTHING else f"Kept for ever: {KEEP} is not set.")
    else:
        say("The lake holds no rows.")
    _say_besides(answer.inventory, as_json=as_json)
    if cached and not as_json:
        say(f"Besides, {cached / MEGABYTE:.1f} of at most {limit / MEGABYTE:.0f} MB are traces once read, in a cache.")
    return _reported([*answer.problems, *due.problems], as_json=as_json)


def _retire(store: "Store", policy: KeepPolicy, *, dry_run: bool, as_json: bool) -> int:
    from crosswind.data.lake.retention.upkeep import expected, upkeep  # noqa: PLC0415 - heavy

    if policy == EVERYTHING:
        raise InvalidInputError(f"{KEEP} is not set: expected a policy such as {EXAMPLE}, there or with --keep")
    due = expected(store.lake, policy)
    if not dry_run:
        with Progress("retiring", due.days, unit="days of a set") as progress:

            def count_day() -> bool:
                progress.advance()
                return False

            try:
                due = upkeep(store.lake, policy, is_over=count_day)
            except ConflictError as error:
                raise UnavailableError(str(error)) from error
    if as_json:
        say_json(asdict(due))
    else:
        say(f"{'To be done' if dry_run else 'Done'}: {_sentence(due)}")
    return _reported(due.problems, as_json=as_json)


def _sentence(due: "Upkeep") -> str:
    size = f"{due.retired_bytes / MEGABYTE:.1f} MB of raw rows"
    retired = f"{due.retired} days retired, with {size}"
    return f"roll-ups of {due.rolled_up} days of sets; {retired}; {due.removed} roll-ups removed."


def _line(one: "SetSurvey") -> tuple[str, ...]:
    times = (NONE if ns is None else utc(ns) for ns in (one.oldest_ns, one.newest_ns))
    sizes = (str(one.days), str(one.files), str(one.small_files), str(one.rows), f"{one.bytes / MEGABYTE:.1f}")
    return (one.name, *sizes, *times, str(len(one.holes)))


def _verify(store: "Store", *, as_json: bool) -> int:
    from crosswind.data.lake.verification import verify  # noqa: PLC0415 - heavy

    days = sum(len(store.lake.days(name)) for name in store.lake.storage.sets())
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
