"""The protocol of readers: another tool's file becomes our records, in a stream; nothing is dropped silently."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

import pyarrow as pa

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.job import Job
from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import History

QUOTED = 20  # skipped lines that a report quotes; the rest are counted
Value = TypeVar("Value")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Skipped:
    """One line that was not understood, and why."""

    line: int
    text: str
    reason: str


@dataclass
class Report:
    """The outcome of reading a file: rows read, rows skipped, and the first skipped ones in full."""

    path: str
    format: str
    read: int = 0
    skipped: int = 0
    damage: str = ""  # where the file breaks off, if it does: what comes after that is not read
    is_timed_by_file: bool = False  # times were counted from the file's last change, and move with it
    quoted: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def skip(self, line: int, text: str, reason: str) -> None:
        """Count a line that was not understood; 0 stands for other parts of a file."""
        self.skipped += 1
        if len(self.quoted) < QUOTED:
            self.quoted.append(Skipped(line, text[:200], reason))

    def break_off(self, reason: str) -> None:
        """Note where the file breaks off."""
        self.damage = reason
        self.skip(0, "", reason)

    def remark(self, counts: Mapping[str, int]) -> None:
        """Note what was counted, unless it never happened."""
        self.notes += [f"{count} {text}" for text, count in counts.items() if count]


def converted(
    records: Iterable[tuple[int, str, Value]], convert: Callable[[Value], Result], report: Report
) -> Iterator[Result]:
    """Yield the results of records with their line numbers and texts; malformed ones go to the report."""
    for number, text, value in records:
        try:
            result = convert(value)
        except MalformedError as error:
            report.skip(number, text, str(error))
        else:
            yield result


@dataclass(frozen=True)
class Context:
    """Facts that a file may not state itself, and that the caller gives.

    `zone` is for times that name none, `workload` for runs and `node` for samples whose files name none, `facts` for
    runs that do not state them.
    """

    system: str
    zone: tzinfo = UTC
    workload: str = ""
    node: str = ""
    facts: Facts = field(default_factory=Facts)

    @property
    def options(self) -> dict[str, str]:
        """The options that were given, as texts; facts only where there are any."""
        given = {name: str(value) for name, value in vars(self).items() if name != "facts"}
        return given | {f"fact.{name}": str(value) for name, value in self.facts.given.items()}


Record: TypeAlias = Job | Run | History | pa.Table  # a table carries its metric set: `data.lake.to_table`


class Reader(Protocol):
    """One format of somebody else's files.

    The rows of a set come in the file's order, and a file that grew gives the same rows as before and then more: so
    the loader recognises new ones. If the only time of its rows is the file's own, which changes whenever it grows, a
    reader says so in the report before the first row: then their other keys identify rows.
    """

    name: ClassVar[str]
    description: ClassVar[str]

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether a file that begins with `head` (at most 64 KiB) is of this format; never raises."""
        ...

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Record]:
        """Yield the file's records; lines not understood go to the report. Raises: MalformedError, UnavailableError."""
        ...


@runtime_checkable
class FolderReader(Reader, Protocol):
    """A format of folders of files, such as a tracker's run; `read` gets the folder."""

    def recognises_folder(self, path: Path) -> bool:
        """Return whether the folder as a whole is of this format; never raises."""
        ...


@runtime_checkable
class MappedReader(Reader, Protocol):
    """A reader with a map of what a file means, named by `mapping`: another map is another reading.

    What it makes of a row replaces what was made of the row before.
    """

    @property
    def mapping(self) -> str:
        """Return the map as text, of equal maps the same."""
        ...


def read_with(reader: Reader, path: Path, report: Report, context: Context) -> Iterator[Record]:
    """Yield a file's records, runs with the facts that the caller gives where they state none. Raises: as `read`."""
    for record in reader.read(path, report, context):
        yield replace(record, facts=record.facts.over(context.facts)) if isinstance(record, Run) else record
