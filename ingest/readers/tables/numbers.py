"""Whole columns of a table as numbers, with the rows that have none: tables of steps have millions of rows."""

import re
from dataclasses import dataclass, field
from datetime import tzinfo

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.clock import EARLIEST_SECONDS, LATEST_SECONDS
from crosswind.ingest.readers.tables.table_file import Chunk
from crosswind.ingest.readers.tables.table_map import Source, TableMap
from crosswind.ingest.readers.tables.units import SECOND_NS, TIMES

DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
ZONE = re.compile(r"(?:Z|[+-][0-9]{2}:?[0-9]{2})$")
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
LONGEST_NS = 10**9 * SECOND_NS  # thirty years
COUNT_MAX = 1 << 53
RANK_MAX = 1 << 31


@dataclass
class Columns:
    """Facts of a chunk's rows as arrays, (n,); a row that is at fault in one of them is reported once, and left."""

    table_map: TableMap
    chunk: Chunk
    zone: tzinfo  # of times that name none
    reasons: dict[int, str] = field(default_factory=dict)  # by row

    def has(self, name: str) -> bool:
        """Return whether the map names the fact."""
        return name in self.table_map.facts

    def counts(self, name: str, limit: int = COUNT_MAX, *, missing: int | None = None) -> Ints:
        """Return whole numbers from 0; `missing` where a row has none or -1, which is a fault without it."""
        numbers = self._numbers(name)
        absent = (np.isnan(numbers) & self._is_empty(name)) | ((numbers == -1) if missing is not None else False)
        wrong = ~((numbers >= 0) & (numbers < limit) & (numbers == np.floor(numbers)))
        wrong &= ~absent if missing is not None else True
        self._fault(name, wrong, f"expected a whole number from 0 to {limit - 1}")
        return np.where(wrong | absent, missing or 0, numbers).astype(np.int64)

    def durations(self, name: str) -> Ints:
        """Return durations in nanoseconds, 0 or more."""
        return self._times(name, "expected a time of 0 or more, less than 30 years")

    def moments(self, name: str, base_ns: int) -> Ints:
        """Return times in ns UTC, of ISO 8601 texts or numbers; numbers before that of 2001 count from `base_ns`."""
        if (stamps := self._stamps(name)) is not None:
            return stamps
        since = self._times(name, "expected a time, 0 or more", limit=LATEST_SECONDS * SECOND_NS)
        return np.where(since >= EARLIEST_SECONDS * SECOND_NS, since, base_ns + since)

    def texts(self, name: str) -> pd.Series:
        """Return texts, several columns joined by /; empty where a row has none."""
        source = self.table_map.facts.get(name)
        if source is None or source.value is not None:
            return pd.Series("" if source is None else str(source.value), index=range(len(self.chunk)))
        parts = [self._cells(column).astype("string").fillna("") for column in source.columns]
        joined = parts[0]
        for part in parts[1:]:
            joined = joined + "/" + part
        return joined.astype(object)

    def kept(self, report: Report) -> Flags:
        """Return a mask of the rows without a fault, and report the others."""
        kept = np.ones(len(self.chunk), np.bool_)
        for row, reason in sorted(self.reasons.items()):
            report.skip(int(self.chunk.lines[row]), self._shown(row), reason)
            kept[row] = False
        return kept

    def _times(self, name: str, expected: str, limit: int = LONGEST_NS) -> Ints:
        numbers, factor = self._numbers(name), TIMES[self.table_map.facts[name].unit or "s"]
        wrong = ~((numbers >= 0) & (numbers < limit / factor))
        self._fault(name, wrong, expected)
        exact = self._whole(name)
        times = np.round(np.where(wrong, 0.0, numbers) * factor).astype(np.int64)
        return times if exact is None else np.where(wrong, 0, exact * factor)

    def _stamps(self, name: str) -> Ints | None:
        """Return ISO 8601 texts as ns UTC; None for numbers."""
        source = self.table_map.facts[name]
        cells = self._cells(source.columns[0]).astype(object) if source.columns else pd.Series(dtype=object)
        first = next((cell for cell in cells if isinstance(cell, str)), "")
        if not DATE.match(first):
            return None
        times = pd.to_datetime(cells, format="ISO8601", errors="coerce", utc=True)
        is_placed = cells.astype(str).str.contains(ZONE).to_numpy(np.bool_)
        if not ZONE.search(first):
            first_of_two = np.ones(len(times), np.bool_)
            naive = times.dt.tz_localize(None)
            times = naive.dt.tz_localize(self.zone, ambiguous=first_of_two, nonexistent="shift_forward")
        ns = times.astype("datetime64[ns, UTC]").astype(np.int64).to_numpy()
        wrong = times.isna().to_numpy() | (ns < EARLIEST_SECONDS * SECOND_NS)
        wrong |= is_placed != bool(ZONE.search(first))  # of a column all or none name their zone
        self._fault(name, wrong, "expected a time such as 2026-03-01T10:00:00Z, between 2001 and 2262")
        return np.where(wrong, 0, ns)

    def _whole(self, name: str) -> Ints | None:
        """Return whole numbers as they are, which may be larger than a fraction holds exactly; None for others."""
        source = self.table_map.facts[name]
        cells = self._cells(source.columns[0]) if source.columns else pd.Series(source.value, range(len(self.chunk)))
        try:
            is_plain = pd.api.types.is_integer_dtype(cells) or not pd.api.types.is_numeric_dtype(cells)
            return cells.to_numpy(dtype=object).astype(np.int64) if is_plain else None
        except (ValueError, TypeError, OverflowError):
            return None

    def _numbers(self, name: str) -> Floats:
        source = self.table_map.facts[name]
        if source.value is not None:
            return np.full(len(self.chunk), pd.to_numeric(source.value, errors="coerce"), np.float64)
        numbers = _numbers(self.chunk.columns.get(source.columns[0]), len(self.chunk))
        return np.where(np.isfinite(numbers), numbers, np.nan)

    def _is_empty(self, name: str) -> Flags:
        source = self.table_map.facts[name]
        if source.value is not None:
            return np.zeros(len(self.chunk), np.bool_)
        return self._cells(source.columns[0]).isna().to_numpy()

    def _cells(self, column: str) -> pd.Series:
        array = self.chunk.columns.get(column)  # of JSON lines, a chunk may lack what others have
        return pd.Series(None, range(len(self.chunk)), dtype=object) if array is None else _series(array)

    def _fault(self, name: str, wrong: Flags, expected: str) -> None:
        source = self.table_map.facts[name]
        label = name if source.columns in ((), (name,)) else f"{name} (column {source.columns[0]!r})"
        for row in np.flatnonzero(wrong).tolist():
            self.reasons.setdefault(row, f"{label} is {_cell(self, source, row)!r:.80}; {expected}")

    def _shown(self, row: int) -> str:
        cells = ((name, column[row].as_py()) for name, column in list(self.chunk.columns.items())[:12])
        return ", ".join(f"{name}={cell}" for name, cell in cells if cell is not None)[:200]


def _cell(columns: Columns, source: Source, row: int) -> object:
    if source.value is not None:
        return source.value
    array = columns.chunk.columns.get(source.columns[0])
    cell = None if array is None else array[row].as_py()
    return "" if cell is None else cell


def _numbers(array: pa.Array | None, count: int) -> Floats:
    """Return cells as numbers, NaN where they are none."""
    if array is None:
        return np.full(count, np.nan)
    try:
        return np.asarray(array.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # some cell is no number; this way is slower
        return pd.to_numeric(_series(array), errors="coerce").to_numpy(np.float64)


def _series(array: pa.Array) -> pd.Series:
    series: pd.Series = array.to_pandas()
    return series
