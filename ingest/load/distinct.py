"""Duplicate rows: repeated in a file, or stored before."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from crosswind.data.lake.lake import Lake, set_of
from crosswind.data.lake.parts import ALWAYS, Span
from crosswind.data.lake.series import numbered
from crosswind.data.schema.metric import Kind, MetricSet
from crosswind.data.store.jobs import FACTS, JOB

PLACE = "place of row"  # a column's name that no set can have
JOBS_REMEMBERED = 1_000_000  # with changes in one reading; beyond, all accounts are stored


@dataclass(frozen=True)
class RowIdentity:
    """The columns by which a row is the same as a stored one: its keys, or all.

    Times that are only those of the file are no keys. `replaced` are prefixes of the names of lake files that this
    reading replaces, so that their rows do not count.
    """

    by_keys: bool
    is_timed_by_file: bool = False
    replaced: tuple[str, ...] = ()

    def keys(self, metric_set: MetricSet) -> list[str]:
        """Return the columns that identify a row."""
        keys = [column.name for column in metric_set.columns if column.kind is Kind.KEY]
        return [key for key in keys if key != "ts_ns" or not self.is_timed_by_file]


def distinct(table: pa.Table) -> pa.Table:
    """Return the rows of a set without repeated keys: the first of each, in their order."""
    keys = [column.name for column in set_of(table.schema).columns if column.kind is Kind.KEY]
    if _follow(table, keys):
        return table
    repeats = pd.Series(numbered(table, keys)).duplicated().to_numpy()
    return table.filter(pa.array(~repeats)) if repeats.any() else table


def without_stored(lake: Lake, table: pa.Table, same: RowIdentity) -> pa.Table:
    """Return the rows that are not stored yet: a copied file repeats its rows, and so does a database that grew."""
    if not len(table):
        return table
    metric_set = set_of(table.schema)
    is_stored = _stored(lake, table, same.keys(metric_set), same)
    if is_stored.any() and not same.by_keys:  # whole rows may be wide: compared only with those of the same keys
        columns = [name for name in table.column_names if name != "ts_ns" or not same.is_timed_by_file]
        is_stored[is_stored] = _stored(lake, table.filter(pa.array(is_stored)), columns, same)
    return table.filter(pa.array(~is_stored)) if is_stored.any() else table


def _stored(lake: Lake, table: pa.Table, columns: Sequence[str], same: RowIdentity) -> np.ndarray:
    """Return a mask of the rows that are stored, compared by these columns."""
    name, is_stored = set_of(table.schema).name, np.zeros(len(table), bool)
    within = ALWAYS if same.is_timed_by_file else _span(table)
    stored = lake.columns(name)
    on = " and ".join(_same_in(column) if column in stored else f'read."{column}" is null' for column in columns)

    def ask(connection: duckdb.DuckDBPyConnection) -> np.ndarray:
        paths = [path for path in _parts(lake, table, within) if not path.name.startswith(same.replaced)]
        if not paths:
            return np.zeros(0, np.int64)
        connection.register("read", _placed(table.select(columns)))
        kept = f"(select * from {lake.source(name, paths)} where ts_ns between {within[0]} and {within[1]})"  # noqa: S608
        relation = connection.sql(f'select read."{PLACE}" as place from read semi join {kept} kept on {on}')  # noqa: S608
        return _places(relation)

    is_stored[lake.answer(ask)] = True
    return is_stored


def _parts(lake: Lake, table: pa.Table, within: Span) -> list[Path]:
    run_ids = pc.unique(table["run_id"]).drop_null().to_pylist() if "run_id" in table.column_names else None
    return lake.parts(set_of(table.schema).name, within, run_ids)


def _span(table: pa.Table) -> Span:
    times = pc.min_max(table["ts_ns"]).as_py()
    return times["min"], times["max"]


def _placed(table: pa.Table) -> pa.Table:
    return table.append_column(PLACE, pa.array(np.arange(len(table)), pa.int64()))


def _places(relation: duckdb.DuckDBPyRelation) -> np.ndarray:
    return np.asarray(relation.to_arrow_table()["place"].to_numpy(), np.int64)


def _same_in(column: str) -> str:
    return f'read."{column}" is not distinct from kept."{column}"'


class ChangedJobs:
    """Selects the accounts in one reading that change what is stored of their jobs."""

    def __init__(self, lake: Lake, replaced: tuple[str, ...] = ()) -> None:
        """`replaced` as in `RowIdentity`."""
        self._lake = lake
        self._replaced = replaced
        self._jobs: set[int] = set()  # changed in this reading: their later accounts must be stored, too

    def of(self, table: pa.Table) -> pa.Table:
        """Return all accounts of the jobs whose last one differs from the stored last one, or from their stored end."""
        if JOB.name not in self._lake.sets() or len(self._jobs) > JOBS_REMEMBERED:
            return table
        jobs = pd.Series([hash(job) for job in zip(*_names(table), strict=True)], dtype="int64")
        is_stored = np.zeros(len(table), bool)
        is_stored[self._lake.answer(lambda connection: self._stored(connection, table))] = True
        is_changed = ~is_stored | jobs.isin(self._jobs).to_numpy()
        self._jobs.update(jobs[is_changed].tolist())
        return table.filter(pa.array(is_changed))

    def _stored(self, connection: duckdb.DuckDBPyConnection, table: pa.Table) -> np.ndarray:
        paths = [path for path in self._lake.parts(JOB.name) if not path.name.startswith(self._replaced)]
        connection.register("read", _placed(table))
        last = "row_number() over (partition by system, job_id order by {} desc) = 1"
        some = f"{self._lake.source(JOB.name, paths)} where job_id in (select job_id from read)"  # noqa: S608 - our own texts
        connection.execute(f"create temp view kept as select *, {last.format('ts_ns')} as is_last from {some}")  # noqa: S608
        newest = f"(select * from read qualify {last.format(chr(34) + PLACE + chr(34))})"  # noqa: S608 - our own texts
        facts = " and ".join(map(_same_in, FACTS))
        same = f"select read.system, read.job_id from {newest} read join kept on {facts}"  # noqa: S608 - our own texts
        same = f"{same} where kept.is_last or read.ended_ns is not null"
        relation = connection.sql(f'select read."{PLACE}" as place from read semi join ({same}) using (system, job_id)')  # noqa: S608
        return _places(relation)


def _names(table: pa.Table) -> Iterator[list[str]]:
    return (table[name].to_pylist() for name in ("system", "job_id"))


def _follow(table: pa.Table, keys: list[str]) -> bool:
    """Return whether the rows are in strict order of time, and one in all other keys."""
    others = [key for key in keys if key != "ts_ns"]
    times = table["ts_ns"].to_numpy()
    return bool((times[1:] > times[:-1]).all()) and all(_is_one(table[key]) for key in others)


def _is_one(column: pa.ChunkedArray) -> bool:
    return bool(pc.count_distinct(column, mode="all").as_py() <= 1)
