"""Samples of many series as tables: wide ones for series with a place in our sets, else rows of the set `series`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosswind.data.lake.lake import ARROW_TYPES, arrow_schema
from crosswind.data.schema.imported import SERIES
from crosswind.data.schema.metric import Column, MetricSet
from crosswind.ingest.series.known_series import NOWHERE, WORDS, Codes, KnownSeries

Floats = NDArray[np.float64]
Times = NDArray[np.int64]
Places = NDArray[np.intp]
Bools = NDArray[np.bool_]
EXACT = 2.0**53  # larger whole numbers are not exact in the 64-bit floats of Prometheus
NEAR = 1e-9  # of a value: the error of a decimal fraction
ROW_BYTES = 64  # of a row of `series` without its texts
SHARE_BYTES = 1 << 26  # of such rows in one table: each has all the texts of its series
COLUMNS = ("codes", "ts_ns", "values", "is_whole")


@dataclass(frozen=True)
class Samples:
    """One entry for every sample; NaN means no value. Only those that are `is_whole` may go into wide rows."""

    codes: Codes
    ts_ns: Times
    values: Floats
    is_whole: Bools

    def __len__(self) -> int:
        return len(self.codes)

    def of(self, chosen: Places | Bools | slice) -> "Samples":
        """Return some of them."""
        return Samples(*(getattr(self, name)[chosen] for name in COLUMNS))

    def at(self, chosen: Bools, ts_ns: int | Times) -> "Samples":
        """Return the same, some of them at other times."""
        return replace(self, ts_ns=np.where(chosen, ts_ns, self.ts_ns))

    def broken(self) -> "Samples":
        """Return the same, none of them for wide rows."""
        return replace(self, is_whole=np.zeros(len(self), np.bool_))


def joined(parts: Sequence[Samples]) -> Samples:
    """Return all of them, one after another."""
    return Samples(*(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS))


def without_repeats(samples: Samples) -> Samples:
    """Return the samples without later ones of the same series and time."""
    order = np.lexsort((samples.ts_ns, samples.codes))
    codes, times = samples.codes[order], samples.ts_ns[order]
    repeats = order[1:][(codes[1:] == codes[:-1]) & (times[1:] == times[:-1])]
    return samples.of(np.delete(np.arange(len(samples)), repeats)) if len(repeats) else samples


def tables(series: KnownSeries, samples: Samples) -> Iterator[pa.Table]:
    """Yield the tables of these samples; rows come in the order of their first samples."""
    samples = samples.of(~np.isnan(samples.values))
    targets = series.numbers("target", samples.codes)
    raw = samples.values / series.numbers("unit", samples.codes)
    is_placed = samples.is_whole & (targets != NOWHERE)
    is_placed &= _are_whole(raw) | np.isin(targets, _of_type(series, "float64"))
    is_placed &= (raw >= 0) | ~np.isin(targets, _of_type(series, "uint64"))
    rest = samples.of(~is_placed)
    for share in shares(series, rest):
        yield series_table(series, share)
    for metric_set, columns in _sets(series, np.unique(targets[is_placed])).items():
        chosen = np.flatnonzero(is_placed & np.isin(targets, list(columns)))
        yield _wide(series, metric_set, columns, _Cells(samples.of(chosen), raw[chosen], targets[chosen]))


def row_bytes(series: KnownSeries, samples: Samples) -> Floats:
    """Return the size of the row of each sample in the set `series`."""
    return series.numbers("size", samples.codes) + ROW_BYTES


def shares(series: KnownSeries, samples: Samples) -> Iterator[Samples]:
    """Yield the samples in portions that become rows of some SHARE_BYTES."""
    if not len(samples):
        return
    ends = np.cumsum(row_bytes(series, samples))
    cuts = np.searchsorted(ends, np.arange(SHARE_BYTES, ends[-1], SHARE_BYTES)).tolist()
    for start, end in pairwise([0, *cuts, len(samples)]):
        if end > start:
            yield samples.of(slice(start, end))


def series_table(series: KnownSeries, samples: Samples) -> pa.Table:
    """Return rows of the set `series`."""
    texts = {word: series.texts(word, samples.codes) for word in WORDS}
    columns = {"ts_ns": pa.array(samples.ts_ns), **texts, "value": pa.array(samples.values)}
    return pa.Table.from_arrays([columns[column.name] for column in SERIES.columns], schema=arrow_schema(SERIES))


@dataclass(frozen=True)
class _Cells:
    samples: Samples
    raw: Floats
    targets: Floats


def _are_whole(raw: Floats) -> Bools:
    with np.errstate(invalid="ignore"):  # infinite ones are not
        return (np.abs(raw - np.rint(raw)) <= NEAR * np.maximum(1.0, np.abs(raw))) & (np.abs(raw) < EXACT)


def _of_type(series: KnownSeries, dtype: str) -> list[int]:
    """Return the targets of this type."""
    return [number for number, (_, column) in enumerate(series.targets.values()) if column.dtype == dtype]


def _sets(series: KnownSeries, wanted: Floats) -> dict[MetricSet, dict[int, Column]]:
    """Return the sets with those of their columns, by target, that have values."""
    sets: dict[MetricSet, dict[int, Column]] = {}
    targets = list(series.targets.values())
    for number in wanted.astype(int).tolist():
        metric_set, column = targets[number]
        sets.setdefault(metric_set, {})[number] = column
    return sets


def _wide(series: KnownSeries, metric_set: MetricSet, columns: dict[int, Column], cells: _Cells) -> pa.Table:
    """Return a row for every time, node and device; of two values of one cell the first stays."""
    rows = series.numbers("row", cells.samples.codes).astype(np.int64)
    _, time_numbers = np.unique(cells.samples.ts_ns, return_inverse=True)
    _, first, row_of = np.unique(time_numbers * len(series.rows) + rows, return_index=True, return_inverse=True)
    order = np.argsort(first)
    row_of, first = np.argsort(order)[row_of], first[order]
    names = list(series.rows)
    nodes, devices = (pa.array([name[part] for name in names], pa.string()) for part in (0, 1))
    places = pa.array(rows[first])
    arrays = {"ts_ns": pa.array(cells.samples.ts_ns[first]), "node": nodes.take(places), "device": devices.take(places)}
    # the last one written stays, so the first of two is written last
    for number, column in columns.items():
        chosen = np.flatnonzero(cells.targets == number)[::-1]
        arrays[column.name] = _column(column, row_of[chosen], cells.raw[chosen], len(first))
    schema = arrow_schema(metric_set)
    filled = [arrays[field.name] if field.name in arrays else pa.nulls(len(first), field.type) for field in schema]
    return pa.Table.from_arrays(filled, schema=schema)


def _column(column: Column, rows: Places, raw: Floats, length: int) -> pa.Array:
    values, is_missing = np.zeros(length), np.ones(length, np.bool_)
    values[rows], is_missing[rows] = raw, False
    whole = values if column.dtype == "float64" else np.rint(values).astype(np.int64)
    return pa.array(whole, mask=is_missing).cast(ARROW_TYPES[column.dtype])
