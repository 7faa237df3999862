"""A lake's sets as the catalog or the footers of their files describe them, without a look at a row."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import pyarrow.parquet as pq

from crosswind.data.lake.damage import passing_over
from crosswind.data.lake.lake import Lake
from crosswind.data.lake.parquet import LARGE_ROWS
from crosswind.data.lake.parts import Span
from crosswind.data.lake.storage import Filed, Inventory

HOLE_NS = 3_600_000_000_000  # a shorter time without rows is no hole


@dataclass(frozen=True)
class FileSurvey:
    """A file that counts: its day's folder, rows, bytes, and the first and last time of each group of rows, ns UTC."""

    day: Path
    rows: int
    bytes: int
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class SetSurvey:
    """One set: its size, its files, its times in ns UTC, None without rows, and the holes between them.

    `small_files` have fewer than 20,000 rows, and are not alone in their day: compaction may merge them.
    """

    name: str
    days: int
    files: int
    small_files: int
    rows: int
    bytes: int
    oldest_ns: int | None
    newest_ns: int | None
    holes: tuple[Span, ...]  # of an hour or longer, from the last row before to the first one after


@dataclass
class LakeSurvey:
    """Every set of a lake, what could not be read or is not there, and what an object store lists besides."""

    sets: list[SetSurvey] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    inventory: Inventory | None = None


def survey(lake: Lake) -> LakeSurvey:
    """Return the state of every set; a damaged file is reported and left out.

    Of a lake in an object store no file is read. Raises: OSError for a full disk, UnavailableError.
    """
    answer = LakeSurvey(inventory=lake.storage.inventory())
    answer.problems += answer.inventory.problems if answer.inventory else []
    for name in lake.storage.sets():
        answer.sets.append(_set(name, list(_files(lake, name, answer.problems))))
    return answer


def _files(lake: Lake, name: str, problems: list[str]) -> Iterator[FileSurvey]:
    for day in lake.days(name):
        with passing_over(problems, day):
            for part in lake.storage.day(day).live:
                with passing_over(problems, part.path):
                    yield _file(day, part)


def _file(day: Path, part: Filed) -> FileSurvey:
    path, noted = part.path, part.noted
    if noted is not None:
        return FileSurvey(day, noted.rows, noted.bytes, ((noted.first_ns, noted.last_ns),))
    footer = pq.read_metadata(path)
    place = footer.schema.names.index("ts_ns")
    chunks = [footer.row_group(number).column(place) for number in range(footer.num_row_groups)]
    ends = [chunk.statistics for chunk in chunks]
    spans = tuple((one.min, one.max) for one in ends if one is not None and one.has_min_max)
    return FileSurvey(day, footer.num_rows, path.stat().st_size, spans)


def _set(name: str, files: Sequence[FileSurvey]) -> SetSurvey:
    by_day = [list(of_day) for _, of_day in groupby(files, key=lambda file: file.day)]
    spans = sorted(span for file in files for span in file.spans)
    return SetSurvey(
        name,
        days=len(by_day),
        files=len(files),
        small_files=sum(len(day) > 1 and file.rows < LARGE_ROWS for day in by_day for file in day),
        rows=sum(file.rows for file in files),
        bytes=sum(file.bytes for file in files),
        oldest_ns=spans[0][0] if spans else None,
        newest_ns=max(last for _, last in spans) if spans else None,
        holes=tuple(_holes(spans)),
    )


def _holes(spans: Iterable[Span]) -> Iterator[Span]:
    """Yield the times of HOLE_NS or more that none of the spans, in order of their begin, reaches into."""
    reached: int | None = None
    for first, last in spans:
        if reached is not None and first - reached >= HOLE_NS:
            yield reached, first
        reached = last if reached is None else max(reached, last)
