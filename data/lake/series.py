"""Rows of a metric set put in the order in which its counters grew: series by series, boot by boot, by the clock."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from crosswind.data.lake.lake import set_of
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import Kind, MetricSet

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Numbers = NDArray[Any]  # uint64 or float64
BOOT, TIME, CLOCK = "boot_id", "ts_ns", "mono_ns"


@dataclass(frozen=True)
class Series:
    """Rows and the order in which to read them; every array has one entry a row, in that order.

    `order` is the row's place among `rows`, `series` the number of what it is about. `boot` numbers boots of series:
    within one, `time_ns` is read from one clock. `epoch` differs where counters were reset in between.
    """

    metric_set: MetricSet
    rows: pa.Table
    order: Ints
    series: Ints
    boot: Ints
    epoch: Ints
    time_ns: Ints


def in_order(rows: pa.Table, *, apart: Sequence[str] = ()) -> Series:
    """The order of rows that carry their set, as `Lake.counters` reads them; they may come in any order.

    A series is one value of all keys, and of the columns `apart`. Its boots follow each other by when they were first
    seen, the rows of a boot by `mono_ns`, which goes on when somebody sets the clock back. Where that, or the boot, is
    not known of every row, `ts_ns` has to do.
    Raises: InvalidInputError for rows without a set, or a row without a time.
    """
    metric_set = set_of(rows.schema)
    if TIME not in rows.column_names or rows[TIME].null_count:
        raise InvalidInputError(f"rows of {metric_set.name}: expected a {TIME} in every row")
    keys = [column.name for column in metric_set.columns if column.kind is Kind.KEY and column.name != TIME]
    epochs = [column.name for column in metric_set.columns if column.kind is Kind.EPOCH and column.name != BOOT]
    series = numbered(rows, (*keys, *apart))
    boot = _together(series, _codes(rows, BOOT))
    time_ns = _times(rows, boot)
    rank = _rank(series, boot, _integers(rows, TIME)[0])[boot]
    order = _sorted(rank, time_ns)
    epoch = _changes([rank[order], *(_codes(rows, name)[order] for name in epochs)])
    return Series(metric_set, rows, order, series[order], rank[order], epoch, time_ns[order])


def numbers(rows: pa.Table, name: str) -> tuple[Numbers, Bools]:
    """A column as uint64 or float64, exact, and which rows hold a number that a counter can show: finite, not below 0.

    The others have 0.
    """
    column = rows[name].combine_chunks()
    is_valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    values = np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False))
    is_valid = is_valid & np.isfinite(values) & (values >= 0)
    values = np.where(is_valid, values, 0)
    return values.astype(np.float64 if values.dtype.kind == "f" else np.uint64, copy=False), is_valid


def _integers(rows: pa.Table, name: str) -> tuple[Ints, Bools]:
    """A column of times, 0 where it is missing, and where it is there."""
    if name not in rows.column_names:
        return np.zeros(len(rows), np.int64), np.zeros(len(rows), np.bool_)
    column = rows[name].combine_chunks().cast(pa.int64())
    is_present = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
    return np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False)), is_present


def _times(rows: pa.Table, boot: Ints) -> Ints:
    times, (since_boot, is_present) = _integers(rows, TIME)[0], _integers(rows, CLOCK)
    is_present = is_present & _is_there(rows, BOOT)
    lacks = np.bincount(boot, ~is_present) > 0
    return np.where(lacks[boot], times, since_boot)


def _is_there(rows: pa.Table, name: str) -> Bools:
    if name not in rows.column_names:
        return np.zeros(len(rows), np.bool_)
    return np.asarray(rows[name].combine_chunks().is_valid().to_numpy(zero_copy_only=False))


def _codes(rows: pa.Table, name: str) -> Ints:
    """A number for each value of a column, null being one of them; 0 throughout for a column that is not there."""
    if name not in rows.column_names:
        return np.zeros(len(rows), np.int64)
    encoded = rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False)).astype(np.int64)


def numbered(rows: pa.Table, names: Iterable[str]) -> Ints:
    """For each row a number below their count, the same where all of these columns have the same value; null is one."""
    codes = np.zeros(len(rows), np.int64)
    for name in names:
        codes = _together(codes, _codes(rows, name))
    return codes


def _together(first: Ints, second: Ints) -> Ints:
    """A number below the number of rows for each pair of numbers."""
    if not len(first) or not second.any():
        return first
    both = first * (second.max() + 1) + second  # each is below the number of rows, so their product fits
    return np.asarray(pd.factorize(both)[0], np.int64)


def _rank(series: Ints, boot: Ints, ts_ns: Ints) -> Ints:
    """The place of each boot: by series, then by when it was first seen."""
    count = int(boot.max()) + 1 if len(boot) else 0
    first_ns, of_series = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
    np.minimum.at(first_ns, boot, ts_ns)
    of_series[boot] = series
    rank = np.empty(count, np.int64)
    rank[np.lexsort((first_ns, of_series))] = np.arange(count)
    return rank


def _sorted(rank: Ints, time_ns: Ints) -> Ints:
    follows = (rank[1:] > rank[:-1]) | ((rank[1:] == rank[:-1]) & (time_ns[1:] >= time_ns[:-1]))
    return np.arange(len(rank)) if follows.all() else np.asarray(np.lexsort((time_ns, rank)))


def _changes(columns: Sequence[Ints]) -> Ints:
    """Return how often any of the columns had changed up to each row."""
    has_changed = np.zeros(len(columns[0]), np.bool_)
    for column in columns:
        has_changed[1:] |= column[1:] != column[:-1]
    return np.cumsum(has_changed)
