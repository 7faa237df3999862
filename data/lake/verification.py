"""A lake held against what it says of itself: every page of every file that counts is read."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from crosswind.data.lake.damage import passing_over
from crosswind.data.lake.lake import Lake, set_of
from crosswind.data.lake.parts import DAY_NS, Manifest, compacted_span, date_of
from crosswind.data.lake.storage import Inventory
from crosswind.data.schema.errors import MalformedError


@dataclass
class Verified:
    """Counts of what was read, each damaged file with what is wrong with it, and what an object store lists besides."""

    files: int = 0
    rows: int = 0
    problems: list[str] = field(default_factory=list)
    inventory: Inventory | None = None


def verify(lake: Lake, *, after_day: Callable[[], object] = lambda: None) -> Verified:
    """Read every definition and part that counts, with the checksums of pages, and hold rows against manifests.

    Changes nothing. Memory is that of one group of rows. What is in an object store is read there, once and not as it
    was copied. Raises: OSError for a full disk, UnavailableError.
    """
    done = Verified(inventory=lake.storage.inventory())
    for name in lake.storage.sets():
        with passing_over(done.problems, f"set {name}"):
            _read_definitions(lake, name)
        for day in lake.days(name):
            _verify_day(lake, day, done)
            after_day()
    return done


def _read_definitions(lake: Lake, name: str) -> None:
    for definition in lake.storage.definitions(name):
        with lake.storage.examined(definition) as path:
            set_of(pq.read_schema(path))


def _verify_day(lake: Lake, day: Path, done: Verified) -> None:
    with passing_over(done.problems, day):
        for part in lake.storage.day(day).live:
            with passing_over(done.problems, part.path), lake.storage.examined(part.path) as path:
                done.rows += _verified_rows(day, path)
                done.files += 1


def _verified_rows(day: Path, path: Path) -> int:
    """Return how many rows a file holds, all of which were read. Raises: MalformedError, ArrowException, OSError."""
    file = pq.ParquetFile(path, page_checksum_verification=True)
    rows = 0
    for batch in file.iter_batches(use_threads=False):
        rows += len(batch)
        _check_times(day, path, **pc.min_max(batch["ts_ns"]).as_py())
    if rows != file.metadata.num_rows:
        raise MalformedError(f"{rows} rows, but its footer says {file.metadata.num_rows}")
    if compacted_span(path.name) and rows > (noted := Manifest.read(path).rows):  # fewer where a run was erased
        raise MalformedError(f"{rows} rows, but its manifest says {noted}")
    return rows


def _check_times(day: Path, path: Path, *, min: int | None, max: int | None) -> None:  # noqa: A002 - Arrow's names
    if min is None or max is None:
        raise MalformedError("rows without a ts_ns")
    if not day.name == f"date={date_of(min // DAY_NS)}" == f"date={date_of(max // DAY_NS)}":
        raise MalformedError(f"rows from {min} to {max} (ns UTC), expected some of {day.name}")
    span = compacted_span(path.name)
    if span and not span[0] <= min <= max <= span[1]:
        raise MalformedError(f"rows from {min} to {max} (ns UTC), but its name says {span[0]} to {span[1]}")
