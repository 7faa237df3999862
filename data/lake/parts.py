"""The files of a set: which of them count, and which may hold what is asked for.

Compaction writes several parts as one file, `part-c<first>_<last>_<digest>.parquet`, with the nanoseconds of its first
and last row in its name. Beside it, and before it, appears `_held-….json`, which names what it was made of: those
parts count no more, whether they are still there or come again. So one rename replaces all of them at once. Of a day
that was retired (`retention`) there is `part-c….-last.parquet`, with the last row of each series.
"""

import hashlib
import json
import os
import re
from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from crosswind.data.schema.errors import MalformedError

COMPACTED = re.compile(r"part-c(-?[0-9]{1,19})_(-?[0-9]{1,19})_([0-9a-f]{16})(-last)?\.parquet")
DEFINITION = re.compile(r"_schema-.*\.parquet")
DAY_NS = 86_400_000_000_000
DIGEST_BYTES = 12
MANIFESTS_KEPT = 2000  # in memory; one of 3000 parts takes 36 KB
Span = tuple[int, int]  # the first and the last nanosecond that count
ALWAYS: Span = (-(2**63), 2**63 - 1)


@dataclass(frozen=True)
class Manifest:
    """The origin of a compacted file: the names of the files it was made of, and of all that those were made of."""

    made_of: tuple[str, ...]
    names: frozenset[str]
    rows: int
    columns: str  # digest of their names
    runs: frozenset[str] | None  # whose rows these are; None for a set without runs
    is_landing: bool = False  # its parts came at the same time and never were files of their own
    jobs: Mapping[str, Any] | None = None  # bounds of the accounts of jobs, for `job_parts`

    def as_text(self) -> str:
        """The manifest as it stands in its file."""
        runs = None if self.runs is None else sorted(self.runs)
        value = {"made_of": sorted(self.made_of), "names": sorted(self.names), "rows": self.rows}
        value |= {"columns": self.columns, "runs": runs, "is_landing": self.is_landing}
        value |= {} if self.jobs is None else {"jobs": self.jobs}
        return json.dumps(value, indent=0)

    @classmethod
    def read(cls, compacted: Path) -> Self:
        """The manifest of a compacted file. Raises: MalformedError, OSError."""
        path = manifest_of(compacted)
        try:
            value: Mapping[str, Any] = json.loads(path.read_text())
            runs = None if value["runs"] is None else frozenset(value["runs"])
            names = frozenset(value["names"])
            is_landing = value.get("is_landing", False)
            jobs = value.get("jobs")
            return cls(tuple(value["made_of"]), names, value["rows"], value["columns"], runs, is_landing, jobs)
        except (KeyError, TypeError, ValueError) as error:
            raise MalformedError(f"{path}: expected what {compacted.name} was made of: {error!s:.200}") from error

    @property
    def digest(self) -> str:
        """The digest that the compacted file is named by: of the same parts always the same file is made."""
        return digest_of_names(self.made_of)


@dataclass(frozen=True)
class Held:
    """A manifest in little memory, for as long as the process lives: it never changes."""

    digests: bytes
    rows: int
    columns: str
    run_hashes: "array[int] | None"  # in order; ten times less than the ids of a large file's runs
    older: frozenset[str]  # the compacted files that it was made of
    is_of_older: bool  # nothing but those went into it
    is_landing: bool

    def __contains__(self, name: str) -> bool:
        return self._has(_digest(name))

    def among(self, names: Mapping[bytes, str]) -> set[str]:
        """Return those of these names, by their digests, that went into the file."""
        if (size := len(self.digests) // DIGEST_BYTES) < len(names):
            return {names[digest] for digest in map(self._at, range(size)) if digest in names}
        return {name for digest, name in names.items() if self._has(digest)}

    def _has(self, digest: bytes) -> bool:
        size = len(self.digests) // DIGEST_BYTES
        place = bisect_left(range(size), digest, key=self._at)
        return place < size and self._at(place) == digest

    def may_hold(self, run_id: str) -> bool:
        """Return whether there may be rows of this run."""
        hashes, wanted = self.run_hashes, hash(run_id)
        if hashes is None:
            return True
        place = bisect_left(hashes, wanted)
        return place < len(hashes) and hashes[place] == wanted

    def _at(self, place: int) -> bytes:
        return self.digests[place * DIGEST_BYTES : (place + 1) * DIGEST_BYTES]


def manifest_of(compacted: Path) -> Path:
    """Return the path of a compacted file's manifest, which says what it was made of."""
    return compacted.with_name(f"_held-{compacted.stem}.json")


def compacted_span(name: str) -> Span | None:
    """The times of a compacted file's first and last row; None for any other part."""
    match = COMPACTED.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def is_last_rows(name: str) -> bool:
    """Return whether a file holds the last rows of a day that was retired."""
    return name.endswith("-last.parquet")


def live_parts(folder: Path, within: Span = ALWAYS, run_ids: Collection[str] | None = None) -> list[Path]:
    """The parts below a set's folder that count and may hold rows of that time and of one of those runs."""
    return [path for day in days(folder, within) for path in live_in(day) if _may_hold(path, within, run_ids)]


def live_in(day: Path) -> list[Path]:
    """The parts in the folder of a day that count. Raises: MalformedError, OSError."""
    names = part_names(day)
    superseded = superseded_in(day, names)
    return [day / name for name in names if name not in superseded]


def days(folder: Path, within: Span = ALWAYS) -> Iterator[Path]:
    """The folders `date=…` of a set that may hold rows of that time, in order."""
    first, last = dates_of(within)
    for name in sorted(_names(folder)):
        date = name.removeprefix("date=")
        if date != name and first <= date <= last:
            yield folder / name


def dates_of(within: Span) -> tuple[str, str]:
    """The first and the last date of folders that may hold rows of that time."""
    return date_of(within[0] // DAY_NS), date_of(-(-within[1] // DAY_NS))  # before 1970 dates are of the day after


def part_names(day: Path) -> list[str]:
    """The parts that stand in the folder of a day, whether they count or not."""
    return sorted(name for name in _names(day) if name.startswith("part-") and name.endswith(".parquet"))


def superseded_in(day: Path, names: Sequence[str], of: Iterable[str] | None = None) -> set[str]:
    """Those `of` the names, or else of all, whose rows stand in a compacted file among the names."""
    if len(names) < 2 and of is None:
        return set()
    asked = {_digest(name): name for name in (names if of is None else of)}
    manifests = [stored for name in names if COMPACTED.fullmatch(name) and (stored := _held_if_there(day / name))]
    return set().union(*(manifest.among(asked) for manifest in manifests))


def _may_hold(path: Path, within: Span, run_ids: Collection[str] | None) -> bool:
    span = compacted_span(path.name)
    if span is None:
        return True
    if span[0] > within[1] or span[1] < within[0]:
        return False
    return run_ids is None or any(map(held(path).may_hold, run_ids))


@lru_cache(maxsize=MANIFESTS_KEPT)
def held(compacted: Path) -> Held:
    """Return what a compacted file was made of. Raises: MalformedError, OSError."""
    manifest = Manifest.read(compacted)
    digests = b"".join(sorted(map(_digest, manifest.names)))
    older = frozenset(name for name in manifest.made_of if COMPACTED.fullmatch(name))
    is_of_older = len(older) == len(manifest.made_of)
    hashes = None if manifest.runs is None else array("q", sorted(map(hash, manifest.runs)))
    return Held(digests, manifest.rows, manifest.columns, hashes, older, is_of_older, is_landing=manifest.is_landing)


def _held_if_there(compacted: Path) -> Held | None:
    """None for a file that was removed a moment ago, because another holds its rows."""
    try:
        return held(compacted)
    except FileNotFoundError:
        if compacted.exists():
            raise
        return None


def digest_of_names(names: Iterable[str]) -> str:
    """Return what a file is named by that is made of files of these names."""
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]


def digest_of_columns(names: Iterable[str]) -> str:
    """Return what manifests call a set of columns."""
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


def _digest(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=DIGEST_BYTES).digest()


def _names(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries]
    except (FileNotFoundError, NotADirectoryError):
        return []


def date_of(day: int) -> str:
    """The date of a day, counted from 1970, as the names of folders have it."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)).date().isoformat()
