"""`crosswind ingest`: stores the spool, or other tools' files, exactly once."""

import argparse
from dataclasses import replace
from pathlib import Path

from crosswind.cli.output import printable, say, say_json
from crosswind.data.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.store import Store
from crosswind.ingest.load import Loaded, load_file, load_spool
from crosswind.ingest.readers import READERS, reader_for
from crosswind.ingest.readers.reader import Reader
from crosswind.ingest.readers.sacct import SacctReader, sacct_command
from crosswind.settings import Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    formats = ", ".join(f"{reader.name} ({reader.description})" for reader in READERS)
    export = " ".join(sacct_command("2026-01-01"))
    parser.epilog = f"Formats: {formats}. A folder is a spool. What Slurm knows comes from: {export}"
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files or spools (default: this spool)")
    parser.add_argument("--format", help="the files' format (default: found out from their content)")
    parser.add_argument("--system", help="the system that the files tell of (default: this one)")
    parser.add_argument("--time-zone", metavar="NAME", help="of times that name none, such as Europe/Berlin")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Stores everything that is named; exit code 2 when a file could not be read at all."""
    loaded, failures = Loaded(), []
    with Store.open(settings.home, database=settings.database) as store:
        for path in arguments.paths or [settings.spool]:
            try:
                if path.is_dir():
                    add(loaded, load_spool(store, path))
                else:
                    reader = reader_with(reader_for(path, arguments.format), arguments.time_zone)
                    load_file(store, path, reader, loaded, system=arguments.system or settings.system)
            except (MalformedError, UnavailableError) as error:
                failures.append(str(error))
    _tell(loaded, failures, as_json=arguments.json)
    return 2 if failures else 0


def reader_with(reader: Reader, time_zone: str | None) -> Reader:
    """The reader, told the time zone. Raises: InvalidInputError when it has no use for one."""
    if time_zone is None:
        return reader
    if not isinstance(reader, SacctReader):
        raise InvalidInputError(f"--time-zone {time_zone!r}: {reader.name} files say their own")
    return replace(reader, time_zone=time_zone)


def store_spool(settings: Settings) -> Loaded:
    """Moves this installation's spool into its store. Raises: UnavailableError."""
    with Store.open(settings.home, database=settings.database) as store:
        return load_spool(store, settings.spool)


def add(total: Loaded, part: Loaded) -> None:
    """Adds what became of one spool."""
    total.batches += part.batches
    total.duplicates += part.duplicates
    total.rows += part.rows
    total.runs |= part.runs
    total.problems += part.problems


def _tell(loaded: Loaded, failures: list[str], *, as_json: bool) -> None:
    if as_json:
        say_json({"loaded": loaded, "failures": failures})
        return
    say(
        f"{loaded.batches} batches stored ({loaded.duplicates} were there before): "
        f"{loaded.rows} rows, {len(loaded.runs)} runs, {loaded.jobs} jobs"
    )
    for report in loaded.reports:
        say(f"{report.path} ({report.format}): {report.read} rows read, {report.skipped} skipped")
        for skipped in report.quoted:
            say(printable(f"  line {skipped.line}: {skipped.reason}: {skipped.text}"))
        for note in report.notes:
            say(f"  note: {note}")
    for problem in [*loaded.problems, *failures]:
        say(printable(f"problem: {problem}"))
