"""Ingestion: spools and other tools' files into the store, exactly once."""

import argparse
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.cli.arguments import facts_of
from crosswind.cli.text.output import printable, say, say_json
from crosswind.cli.verbs.capabilities import say_capabilities
from crosswind.cli.verbs.ingest.preview import Looking
from crosswind.cli.verbs.ingest.progress import ingesting
from crosswind.client.installed_store import open_checked, open_store
from crosswind.client.run_names import LATEST, run_named
from crosswind.data.schema.errors import InvalidInputError, MalformedError, NotFoundError, ProjectError
from crosswind.data.store.capabilities import capabilities, kept_in
from crosswind.data.store.store import Store
from crosswind.ingest.load.load import Loaded, load_spool
from crosswind.ingest.load.load_file import Named, load_file
from crosswind.ingest.load.load_traces import load_traces
from crosswind.ingest.reader.lines import refuse_pipe
from crosswind.ingest.reader.reader import Context, Reader, Report
from crosswind.ingest.readers.clock import zone_named
from crosswind.ingest.readers.fetch import fetched, is_url
from crosswind.ingest.readers.formats import READERS, reader_for
from crosswind.ingest.readers.search import candidates_below
from crosswind.ingest.readers.slurm.sacct import sacct_command
from crosswind.ingest.readers.tables.table_map import TableMap
from crosswind.ingest.readers.tables.table_reader import TableReader
from crosswind.settings import Settings

NEW_RUN = re.compile(r"[A-Za-z0-9._:+-]{4,200}")
NAMED = 20  # unknown files, by name


def formats_words() -> str:
    """Return the formats by name, and the command that exports Slurm's accounting best."""
    formats = ", ".join(f"{reader.name} ({reader.description})" for reader in READERS)
    export = " ".join(sacct_command("2026-01-01"))
    return f"Formats: {formats}. Slurm's accounting is exported by: {export}"


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Store everything that is named; exit code 2 when a file could not be read at all."""
    system, zone = arguments.system or settings.system, zone_named(arguments.time_zone)
    context = Context(system, zone, arguments.workload, arguments.node, facts_of(arguments.fact))
    reader = _reader_of(arguments)
    if arguments.run is not None and (reader or arguments.dry_run or not arguments.paths):
        raise InvalidInputError("--run: expected files of traces, and none of --format, --map, --dry-run")
    if arguments.again and (reader or arguments.dry_run or arguments.run is not None):
        raise InvalidInputError("--again: expected spools, and none of --format, --map, --dry-run, --run")
    if arguments.dry_run:
        return _dry_run(Looking(context, reader), arguments, settings)
    with open_checked(settings) as store:
        taking, paths = _Taking(store, context, reader, again=arguments.again), arguments.paths or [str(settings.spool)]
        with ingesting(paths, taking.loaded):
            if arguments.run is not None:
                paths_of_run = [Path(path) for path in arguments.paths]
                taking.take_traces(paths_of_run, arguments.run, settings.trace_cache_bytes)
            for path in paths if arguments.run is None else ():
                taking.take(path)
        kept = kept_in(store) if taking.loaded.reports else None  # spools come all the time and add no kind of question
    if arguments.json:
        say_json(_as_json(taking) | ({"kept": kept, "possible": list(capabilities(kept))} if kept else {}))
        return 2 if taking.failures else 0
    _print(taking)
    if kept:
        say_capabilities(kept)
    return 2 if taking.failures else 0


def _reader_of(arguments: argparse.Namespace) -> Reader | None:
    """Return the reader for all files, where a map or a format names one. Raises: ProjectError."""
    if arguments.map is None:
        return None if arguments.format is None else reader_for(Path(), arguments.format)  # raises, naming the formats
    if arguments.format not in (None, TableReader.name):
        raise InvalidInputError(f"--map with --format {arguments.format}: expected no --format, or {TableReader.name}")
    return TableReader(TableMap.read(Path(arguments.map)))


def _dry_run(looking: Looking, arguments: argparse.Namespace, settings: Settings) -> int:
    paths = arguments.paths or [str(settings.spool)]
    with ingesting(paths, looking.loaded):
        for path in paths:
            looking.look(path)
    if arguments.json:
        say_json(looking.as_json())
    else:
        looking.say()
    return 2 if looking.failures else 0


@dataclass
class _Taking:
    """An ingestion under way: the store, and the outcome of every path and URL so far."""

    store: Store
    context: Context
    reader: Reader | None  # for all files, where one is named
    again: bool = False  # of spools
    loaded: Loaded = field(default_factory=Loaded)
    failures: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def take(self, name: str) -> None:
        """Store the contents of a path or URL; one that cannot be read does not stop the others."""
        try:
            if self.again and not is_spool(Path(name)):
                raise InvalidInputError(f"{name}: expected a spool, a folder with segments, since --again is given")
            if is_url(name):
                self._url(name)
            elif Path(name).is_dir():
                self._folder(Path(name))
            else:
                refuse_pipe(Path(name))
                self._file(Path(name), self.reader or reader_for(Path(name)))
        except ProjectError as error:
            self.failures.append(str(error))
        except OSError as error:
            self.failures.append(f"{name}: {error.strerror}")

    def take_traces(self, paths: Sequence[Path], name: str, cache_bytes: int) -> None:
        """Store files as traces of a run: by its id, the end of one, or a new one's; so much of them stays cached."""
        try:
            run_id = _run_id(self.store, name)
            load_traces(self.store, paths, run_id, self.loaded, context=self.context, cache_bytes=cache_bytes)
        except ProjectError as error:
            self.failures.append(str(error))
        self.failures += [f"{report.path}: {report.damage}" for report in self.loaded.reports if report.damage]

    def _url(self, url: str) -> None:
        with fetched(url, self.store.home / "fetched") as path:
            try:
                reader = self.reader or reader_for(path)
            except MalformedError as error:
                raise MalformedError(str(error).replace(str(path), url)) from error
            self._file(Named(path, url), reader)

    def _file(self, file: Path | Named, reader: Reader) -> None:
        """Store one file; an error of it or its reader does not stop the others."""
        path, named = (file, str(file)) if isinstance(file, Path) else (file.path, file.name)
        try:
            if not load_file(self.store, file, reader, self.loaded, context=self.context):
                self.unknown.append(f"{named}: {reader.name} found nothing to store: {_why(self.loaded.reports[-1])}")
            if damage := self.loaded.reports[-1].damage:
                self.failures.append(f"{named}: {damage}; what came before that is stored")
        except ProjectError as error:
            self.failures.append(str(error).replace(str(path), named))
        except Exception as error:  # noqa: BLE001  a reader may be a plug-in
            reason = f"{type(error).__name__}: {error}"
            self.failures.append(f"{named}: the reader {reader.name} failed, nothing is stored: {reason:.300}")

    def _folder(self, folder: Path) -> None:
        if is_spool(folder):
            add(self.loaded, load_spool(self.store, folder, again=self.again))
            return
        readable = 0
        for candidate in candidates_below(folder, self.reader.name if self.reader else None):
            if candidate.reader is None:
                (self.failures if candidate.is_failure else self.unknown).append(candidate.reason)
                continue
            readable += 1
            self._file(candidate.path, self.reader or candidate.reader)
        if not readable:
            raise MalformedError(f"{folder}: holds nothing of a known format")


def _run_id(store: Store, name: str) -> str:
    """Return the id of the stored run of this name, or of a new one. Raises: InvalidInputError, NotFoundError."""
    from crosswind.client.local import Local  # noqa: PLC0415 - heavy

    try:
        return run_named(Local(store), name).run_id
    except NotFoundError as error:
        if name == LATEST:
            raise
        if not NEW_RUN.fullmatch(name):
            raise InvalidInputError(
                f"{error}; for a new one expected 4 to 200 letters, digits and any of . _ : + -"
            ) from error
        return name


def _why(report: Report) -> str:
    reasons = [skipped.reason for skipped in report.quoted] + report.notes
    return reasons[0] if reasons else "no line has data"


def is_spool(folder: Path) -> bool:
    """Return whether this is a folder that is empty or has segments of agents or probes."""
    if not folder.is_dir():
        return False
    names = [path.name for path in folder.iterdir()]
    return not names or any(
        name.endswith((".segment", ".open", ".rejected")) or name == "ingest.lock" for name in names
    )


def store_spool(settings: Settings) -> Loaded:
    """Moves this installation's spool into its store. Raises: UnavailableError."""
    with open_store(settings) as store:
        return load_spool(store, settings.spool)


def add(total: Loaded, part: Loaded) -> None:
    """Add the outcome of one spool."""
    total.batches += part.batches
    total.duplicates += part.duplicates
    total.rows += part.rows
    total.runs |= part.runs
    total.problems += part.problems


def _as_json(taking: _Taking) -> dict[str, object]:
    return {"loaded": taking.loaded, "failures": taking.failures, "unknown": taking.unknown}


def _print(taking: _Taking) -> None:
    loaded = taking.loaded
    trials = f", {loaded.trials} trials" if loaded.trials else ""
    say(
        f"{loaded.batches} batches stored ({loaded.duplicates} were there before): "
        f"{loaded.rows} rows, {len(loaded.runs)} runs, {loaded.jobs} jobs{trials}"
    )
    for report in loaded.reports:
        _print_report(report)
    for problem in [*loaded.problems, *taking.failures]:
        say(printable(f"problem: {problem}"))
    _print_unknown(taking.unknown)


def _print_report(report: Report) -> None:
    say(printable(f"{report.path} ({report.format}): {report.read} rows read, {report.skipped} skipped"))
    for skipped in report.quoted:
        say(printable(f"  line {skipped.line}: {skipped.reason}: {skipped.text}"))
    for note in report.notes:
        say(printable(f"  note: {note}"))


def _print_unknown(unknown: Iterable[str]) -> None:
    reasons = list(unknown)
    for reason in reasons[:NAMED]:
        say(printable(f"left out: {reason}"))
    if len(reasons) > NAMED:
        say(f"left out: {len(reasons) - NAMED} more")
