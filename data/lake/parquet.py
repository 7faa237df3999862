"""Tables written as Parquet: parts of minutes quickly, large ones small."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crosswind.data.files import private
from crosswind.data.lake.parts import DAY_NS, Span, date_of
from crosswind.data.schema.metric import MetricSet

LARGE_ROWS = 20_000
SAMPLE_ROWS = 1000
DIFFERENT = 0.9  # of the sample: a dictionary of such a column would be the column again
ROWS_READ_AT_ONCE = 32_768  # of a large table: queries pass over groups of so many rows by their statistics
SORT_KEYS = ("run_id", "rank", "node", "device", "ts_ns", "step", "sequence")  # also what queries pass over files by


@dataclass(frozen=True)
class _Options:
    use_dictionary: list[str]
    column_encoding: dict[str, str]
    write_statistics: list[str]

    def of_floats(self, table: pa.Table) -> "_Options":
        """Return options under which floats become small, as they are in a first table.

        Those that come again become a dictionary; of others the bytes of the same place are beside each other, where
        zstd finds their likeness. To write costs more.
        """
        floats = [field.name for field in table.schema if pa.types.is_float64(field.type)]
        again = [name for name in floats if _repeats(table[name])]
        split = dict.fromkeys((name for name in floats if name not in again), "BYTE_STREAM_SPLIT")
        return _Options([*self.use_dictionary, *again], {**self.column_encoding, **split}, self.write_statistics)


@lru_cache(maxsize=500)
def _options(metric_set: MetricSet) -> _Options:
    words = [column.name for column in metric_set.columns if column.dtype == "string"]
    integers = [column.name for column in metric_set.columns if column.dtype in {"int64", "uint64"}]
    keys = [column.name for column in metric_set.columns if column.name in SORT_KEYS]
    return _Options(words, dict.fromkeys(integers, "DELTA_BINARY_PACKED"), keys)


def sorted_rows(table: pa.Table) -> pa.Table:
    """The rows in the order of the SORT_KEYS that they have."""
    keys = [key for key in SORT_KEYS if key in table.column_names]
    if keys == ["ts_ns"] and _are_in_order(table):
        return table
    return table.sort_by([(key, "ascending") for key in keys])


def _are_in_order(table: pa.Table) -> bool:
    """Return whether no time is before the one above it: sorting takes several times as long as to look."""
    times = table["ts_ns"].to_numpy()
    return bool((times[1:] >= times[:-1]).all())


def write_parquet(table: pa.Table, path: Path, metric_set: MetricSet) -> None:
    """Writes a table of the set.

    Differences of neighbours are smaller than what zstd makes of counters, in a third of the time: setting a
    compressor up costs more than a minute's column is worth. Raises: OSError.
    """
    is_large = len(table) >= LARGE_ROWS
    options = _options(metric_set)
    if is_large:
        options = replace(options, use_dictionary=[name for name in options.use_dictionary if _repeats(table[name])])
    sink = pa.BufferOutputStream()  # into a file, Arrow would write every page of every column by itself
    pq.write_table(
        table,
        sink,
        **vars(options),
        compression="zstd" if is_large else "snappy",
        row_group_size=ROWS_READ_AT_ONCE if is_large else None,
        write_page_checksum=True,
        store_schema=is_large or not len(table),  # Arrow's copy of the metadata would be a third of a minute's part
    )
    with open(path, "wb", opener=private) as file:
        file.write(sink.getvalue())


@contextmanager
def chunk_writer(path: Path, first: pa.Table, metric_set: MetricSet) -> Iterator[pq.ParquetWriter]:
    """Yield a writer of tables such as a first one, one after another, which are not in memory at once.

    Raises: OSError.
    """
    options = _options(metric_set).of_floats(first)
    with (
        open(path, "wb", opener=private) as file,
        pq.ParquetWriter(file, first.schema, **vars(options), compression="zstd", write_page_checksum=True) as writer,
    ):
        yield writer


def times_in(file: pq.ParquetFile) -> Span | None:
    """Return the first and the last time of a file's rows, which are not in memory at once; None without any."""
    ends = [pc.min_max(rows["ts_ns"]).as_py() for rows in file.iter_batches(columns=["ts_ns"], use_threads=False)]
    timed = [one for one in ends if one["min"] is not None]
    return (min(one["min"] for one in timed), max(one["max"] for one in timed)) if timed else None


def _repeats(values: pa.ChunkedArray) -> bool:
    """Return whether values come again, by the first ones."""
    return bool(pc.count_distinct(values.slice(0, SAMPLE_ROWS)).as_py() < DIFFERENT * min(SAMPLE_ROWS, len(values)))


def by_date(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each day, with its date."""
    first, last = pc.min_max(table["ts_ns"]).as_py().values() if len(table) else (0, 0)
    if first // DAY_NS == last // DAY_NS:
        if len(table):
            yield date_of(first // DAY_NS), table
        return
    days = pc.divide(table["ts_ns"], DAY_NS)
    for day in pc.unique(days).to_pylist():
        yield date_of(day), table.filter(pc.equal(days, day))
