"""Rows that a file tells twice, or that were told before."""

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

PLACE = "place of told"  # a column's name that no set can have
JOBS_REMEMBERED = 1_000_000  # that had news in one reading; beyond, all of its accounts are taken


@dataclass(frozen=True)
class Same:
    """The criteria by which a row is the same as one that is stored: its keys, or all that it says.

    Where times are only those of the file, they are no keys. `replaced` are beginnings of the names of files that
    stand for nothing: what is being read replaces them.
    """

    by_keys: bool
    is_timed_by_file: bool = False
    replaced: tuple[str, ...] = ()

    def keys(self, metric_set: MetricSet) -> list[str]:
        """The columns by which rows are found again."""
        keys = [column.name for column in metric_set.columns if column.kind is Kind.KEY]
        return [key for key in keys if key != "ts_ns" or not self.is_timed_by_file]


def distinct(table: pa.Table) -> pa.Table:
    """The rows of a set with one row for each value of its keys, the first, in the order in which they came."""
    keys = [column.name for column in set_of(table.schema).columns if column.kind is Kind.KEY]
    if _follow(table, keys):
        return table
    repeats = pd.Series(numbered(table, keys)).duplicated().to_numpy()
    return table.filter(pa.array(~repeats)) if repeats.any() else table


def without_known(lake: Lake, table: pa.Table, same: Same) -> pa.Table:
    """The rows of a set of which no same row is stored: copies tell theirs again, databases all whenever they grew."""
    if not len(table):
        return table
    metric_set = set_of(table.schema)
    is_stored = _known(lake, table, same.keys(metric_set), same)
    if is_stored.any() and not same.by_keys:  # whole rows may be wide: held only against those of the same keys
        columns = [name for name in table.column_names if name != "ts_ns" or not same.is_timed_by_file]
        is_stored[is_stored] = _known(lake, table.filter(pa.array(is_stored)), columns, same)
    return table.filter(pa.array(~is_stored)) if is_stored.any() else table


def _known(lake: Lake, table: pa.Table, columns: Sequence[str], same: Same) -> np.ndarray:
    """Return a mask of the rows that are stored, by these columns."""
    name, is_stored = set_of(table.schema).name, np.zeros(len(table), bool)
    within = ALWAYS if same.is_timed_by_file else _span(table)
    stored = lake.columns(name)
    on = " and ".join(_same_in(column) if column in stored else f'told."{column}" is null' for column in columns)

    def ask(connection: duckdb.DuckDBPyConnection) -> np.ndarray:
        paths = [path for path in _parts(lake, table, within) if not path.name.startswith(same.replaced)]
        if not paths:
            return np.zeros(0, np.int64)
        connection.register("told", _placed(table.select(columns)))
        kept = f"(select * from {lake.source(name, paths)} where ts_ns between {within[0]} and {within[1]})"  # noqa: S608
        relation = connection.sql(f'select told."{PLACE}" as place from told semi join {kept} kept on {on}')  # noqa: S608
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
    return f'told."{column}" is not distinct from kept."{column}"'


class JobNews:
    """The accounts of one reading that tell something new of their jobs, as long as one was read before it."""

    def __init__(self, lake: Lake, replaced: tuple[str, ...] = ()) -> None:
        """`replaced` as in `Same`."""
        self._lake = lake
        self._replaced = replaced
        self._jobs: set[int] = set()  # that had news in this reading: what it tells of them later holds against that

    def of(self, table: pa.Table) -> pa.Table:
        """All accounts of those jobs of which the last one is not what was told last, or how they ended."""
        if JOB.name not in self._lake.sets() or len(self._jobs) > JOBS_REMEMBERED:
            return table
        jobs = pd.Series([hash(job) for job in zip(*_names(table), strict=True)], dtype="int64")
        is_stored = np.zeros(len(table), bool)
        is_stored[self._lake.answer(lambda connection: self._known(connection, table))] = True
        is_news = ~is_stored | jobs.isin(self._jobs).to_numpy()
        self._jobs.update(jobs[is_news].tolist())
        return table.filter(pa.array(is_news))

    def _known(self, connection: duckdb.DuckDBPyConnection, table: pa.Table) -> np.ndarray:
        paths = [path for path in self._lake.parts(JOB.name) if not path.name.startswith(self._replaced)]
        connection.register("told", _placed(table))
        last = "row_number() over (partition by system, job_id order by {} desc) = 1"
        some = f"{self._lake.source(JOB.name, paths)} where job_id in (select job_id from told)"  # noqa: S608 - our own texts
        connection.execute(f"create view kept as select *, {last.format('ts_ns')} as is_last from {some}")  # noqa: S608
        newest = f"(select * from told qualify {last.format(chr(34) + PLACE + chr(34))})"  # noqa: S608 - our own texts
        facts = " and ".join(map(_same_in, FACTS))
        same = f"select told.system, told.job_id from {newest} told join kept on {facts}"  # noqa: S608 - our own texts
        same = f"{same} where kept.is_last or told.ended_ns is not null"
        relation = connection.sql(f'select told."{PLACE}" as place from told semi join ({same}) using (system, job_id)')  # noqa: S608
        return _places(relation)


def _names(table: pa.Table) -> Iterator[list[str]]:
    return (table[name].to_pylist() for name in ("system", "job_id"))


def _follow(table: pa.Table, keys: list[str]) -> bool:
    """Return whether time alone puts every row in its own place, in the order in which they stand."""
    others = [key for key in keys if key != "ts_ns"]
    times = table["ts_ns"].to_numpy()
    return bool((times[1:] > times[:-1]).all()) and all(_is_one(table[key]) for key in others)


def _is_one(column: pa.ChunkedArray) -> bool:
    return bool(pc.count_distinct(column, mode="all").as_py() <= 1)
