"""Accounts of jobs in a part: when jobs began, which numbers their ids have, which users and states there are.

A compacted file's manifest says so; of any other part its columns are read once. So a question opens few parts of many.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crosswind.data.lake.parts import COMPACTED, manifest_of

NAMED = ("name", "system", "user", "account", "state")  # columns of which a part's values are kept
TIMED = {"job_id": pa.string(), "started_ns": pa.int64()}  # columns that all accounts of jobs have
VALUES_MAX = 500  # of a column; a part with more may hold any
RANGES_MAX = 64  # of numbers of ids in a part
PARTS_KEPT = 10_000  # in memory; one takes some kilobytes
_DIGITS = re.compile(r"\d{1,18}")
Ids = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, eq=False)
class JobPart:
    """Bounds of what a part holds; it may hold less."""

    rows: int
    started: tuple[int, int] | None  # the first and the last start
    waits: bool  # an account has no start
    ids: Ids | None  # (n, 2), the first and the last of ranges of `numbers_of`, in order; None: any
    values: Mapping[str, frozenset[int]]  # digests by column; a column that is not there may have any

    @classmethod
    def of(cls, rows: pa.Table) -> Self:
        """Return the bounds of some accounts."""
        started = pc.min_max(rows["started_ns"]).as_py()
        span = None if started["min"] is None else (started["min"], started["max"])
        values = {name: _digests(rows[name]) for name in NAMED if name in rows.column_names}
        kept = {name: digests for name, digests in values.items() if digests is not None}
        return cls(len(rows), span, rows["started_ns"].null_count > 0, _ranges(rows["job_id"]), kept)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return what `as_json` wrote. Raises: KeyError, TypeError, ValueError."""
        ids = None if value["ids"] is None else np.array(value["ids"], np.int64).reshape(-1, 2)
        started = None if value["started"] is None else (int(value["started"][0]), int(value["started"][1]))
        values = {name: frozenset(digests) for name, digests in value["values"].items()}
        return cls(int(value["rows"]), started, bool(value["waits"]), ids, values)

    def as_json(self) -> dict[str, Any]:
        """Return it as it stands in a manifest."""
        ids = None if self.ids is None else self.ids.tolist()
        values = {name: sorted(digests) for name, digests in self.values.items()}
        return {"rows": self.rows, "started": self.started, "waits": self.waits, "ids": ids, "values": values}

    def may_hold(self, column: str, value: str) -> bool:
        """Return whether an account may have this value."""
        return column not in self.values or crc32(value.encode()) in self.values[column]

    def may_hold_ids(self, ranges: Ids | None) -> bool:
        """Return whether an account's id may have a number in one of these ranges, which are in order; None: any."""
        if self.ids is None or ranges is None:
            return True
        places = np.searchsorted(ranges[:, 1], self.ids[:, 0])
        below = places < len(ranges)
        return bool((ranges[places[below], 0] <= self.ids[below, 1]).any())

    def end(self, low_ns: int, high_ns: int, *, is_last: bool) -> int | None:
        """Return the last start within these bounds that there may be, or the first; one that waits counts as of 0."""
        ends = [0] if self.waits and low_ns <= 0 <= high_ns else []
        if self.started and self.started[0] <= high_ns and self.started[1] >= low_ns:
            ends.append(min(self.started[1], high_ns) if is_last else max(self.started[0], low_ns))
        return (max if is_last else min)(ends, default=None)


ANY = JobPart(0, (-(2**63), 2**63 - 1), waits=True, ids=None, values={})


def ranges_of(job_ids: Iterable[str], most: int | None = None) -> Ids:
    """Return at most so many ranges of the numbers of ids: schedulers count, so jobs of a time are near each other."""
    numbers = np.array(sorted({_number(job_id) for job_id in job_ids}), np.int64)
    if not len(numbers):
        return np.empty((0, 2), np.int64)
    wide = np.sort(np.argsort(np.diff(numbers))[::-1][: None if most is None else most - 1])
    return np.stack([numbers[[0, *(wide + 1)]], numbers[[*wide, len(numbers) - 1]]], axis=1)


def together(parts: Iterable[JobPart]) -> Ids | None:
    """Return the ranges of the ids in any of these parts."""
    ranges = [part.ids for part in parts]
    given = [one for one in ranges if one is not None]
    if not given or len(given) < len(ranges):
        return None
    every = np.concatenate(given)
    every = every[np.argsort(every[:, 0])]
    lasts = np.maximum.accumulate(every[:, 1])
    begins = np.flatnonzero(np.r_[True, every[1:, 0] > lasts[:-1]])
    return np.stack([every[begins, 0], lasts[np.r_[begins[1:], len(every)] - 1]], axis=1)


def job_part(path: Path) -> JobPart:
    """Return the bounds of a part, of which the manifest is here, or else the file; any for one that cannot be read."""
    try:
        return _noted(path) if COMPACTED.fullmatch(path.name) else _read(path, path.stat().st_mtime_ns)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):
        return ANY  # the query that opens it says what is wrong


@lru_cache(maxsize=PARTS_KEPT)
def _noted(path: Path) -> JobPart:
    noted = json.loads(manifest_of(path).read_text()).get("jobs")
    return JobPart.from_json(noted) if noted else _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=PARTS_KEPT)
def _read(path: Path, _changed_ns: int) -> JobPart:
    with pq.ParquetFile(path) as file:
        wanted = [name for name in (*NAMED, *TIMED) if name in file.schema_arrow.names]
        return JobPart.of(file.read(wanted, use_threads=False))


def _number(job_id: str) -> int:
    digits = _DIGITS.match(job_id)
    return int(digits[0]) if digits else int.from_bytes(job_id.encode()[:7].ljust(7, b"\0"))


def _ranges(job_ids: pa.ChunkedArray) -> Ids | None:
    texts = pc.unique(job_ids).to_pylist()
    return ranges_of(texts, RANGES_MAX) if texts and None not in texts else None


def _digests(values: pa.ChunkedArray) -> frozenset[int] | None:
    """Return the digests of a column's texts; None of too many."""
    texts = pc.unique(values).to_pylist() if pa.types.is_string(values.type) else None
    return (
        None
        if texts is None or len(texts) > VALUES_MAX
        else frozenset(crc32(value.encode()) for value in texts if value is not None)
    )
