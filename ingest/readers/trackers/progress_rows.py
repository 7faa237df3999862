"""Values of trackers as rows of the set `progress`."""

import math
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import pyarrow as pa

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.steps import PROGRESS
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.clock import EARLIEST_SECONDS, LATEST_SECONDS

ROWS_AT_ONCE = 100_000
NAME_LIMIT = 1000  # characters
SECOND_NS = 1_000_000_000


class Value(NamedTuple):
    """One value of one name at one step; `value` is NaN or infinite if it was so."""

    ts_ns: int
    step: int
    name: str
    value: float


def progress(run_id: str, values: Iterable[Value], report: Report) -> Iterator[pa.Table]:
    """Yield the values as tables of the set, counted as rows read; trackers have no ranks, so all are rank 0's."""
    remaining = iter(values)
    while rows := list(islice(remaining, ROWS_AT_ONCE)):
        report.read += len(rows)
        columns: dict[str, list[Scalar]] = {
            "ts_ns": [row.ts_ns for row in rows],
            "run_id": [run_id for _ in rows],
            "rank": [0 for _ in rows],
            "step": [row.step for row in rows],
            "name": [row.name for row in rows],
            "value": [row.value if math.isfinite(row.value) else None for row in rows],
        }
        yield to_table(PROGRESS, columns)


def fault_of(value: Value) -> str:
    """Return why a value cannot be a row; empty when it can."""
    if not EARLIEST_SECONDS <= value.ts_ns // SECOND_NS <= LATEST_SECONDS:
        return f"time {value.ts_ns} ns of {value.name[:40]!r} is not between 2001 and 2262"
    if not 0 < len(value.name) <= NAME_LIMIT:
        return f"name of {len(value.name)} characters; expected 1 to {NAME_LIMIT}"
    if "\0" in value.name or not _is_text(value.name):
        return f"name {value.name[:40]!r} has characters that no text has"
    if not -(1 << 63) <= value.step < 1 << 63:
        return f"step {value.step} of {value.name[:40]!r} does not fit 64 bits"
    return ""


def _is_text(name: str) -> bool:
    """Return whether the name can be stored as text: JSON allows lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def nanoseconds(seconds: float) -> int:
    """Return nanoseconds of a time in seconds; 0, which is no valid time, for anything but a number."""
    return round(seconds * SECOND_NS) if 0 < seconds < LATEST_SECONDS else 0
