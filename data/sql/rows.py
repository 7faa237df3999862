"""The rows that a statement needs, as Arrow batches: cut by the rule of the store, and by what the statement says."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from crosswind.data.lake.lake import ARROW_TYPES, converted
from crosswind.data.lake.parts import ALWAYS
from crosswind.data.lake.steps_summary import time_of
from crosswind.data.schema.metric import MetricSet
from crosswind.data.schema.redaction import shown_words
from crosswind.data.sql.catalog_tables import CATALOG_TABLES
from crosswind.data.sql.plan import RUN_ID, Condition, Wanted
from crosswind.data.sql.tables import COLUMNS, JOBS, OF_RUNS, described, dtype_of
from crosswind.data.store.job_accounts import settled
from crosswind.data.store.jobs import FACTS, JOB
from crosswind.data.store.store import Store

AT_ONCE = 10_000
FEW = 5000  # ids in one statement of the catalog
Begin = Callable[[pa.Schema], None]
Take = Callable[[pa.RecordBatch], None]


@dataclass
class Reader:
    """Reads tables of a store for one statement. `until` is told how to end a query that has begun."""

    store: Store
    tables: "dict[str, MetricSet]"
    until: Callable[[Callable[[], None]], None]
    runs_handed: dict[str, set[str]] = field(default_factory=dict)  # by table that was read: the runs of its rows

    def read(self, wanted: Wanted, begin: Begin, take: Take) -> None:
        """Give the schema and then the rows of what is wanted; the schema again where all begins anew.

        Raises: MalformedError naming a damaged file; as `begin` and `take`.
        """
        shown = self.tables[wanted.table]
        names = [one.name for one in shown.columns if wanted.columns is None or one.name in wanted.columns]
        names = names or [shown.columns[0].name]
        schema = pa.schema([(name, ARROW_TYPES[dtype_of(shown[name])]) for name in names])
        is_bound = wanted.table in CATALOG_TABLES and RUN_ID in names
        runs = self.runs_handed.setdefault(wanted.table, set()) if is_bound else None

        def note(batch: pa.RecordBatch) -> None:
            if runs is not None:
                runs.update(batch.column(RUN_ID).to_pylist())
            take(batch)

        if wanted.table == COLUMNS.name:
            self._listed(schema, begin, note)
        elif wanted.table in CATALOG_TABLES:
            self._of_catalog(wanted, schema, begin, note)
        else:
            self._of_lake(wanted, schema, begin, note)

    def _listed(self, schema: pa.Schema, begin: Begin, take: Take) -> None:
        begin(schema)
        rows = [
            {"table_name": table.name, "column_name": one.name, **vars(one)}
            for table in described(self.store).tables
            for one in table.columns
        ]
        take(_batch(schema, [[row[name] for name in schema.names] for row in rows]))

    def _of_catalog(self, wanted: Wanted, schema: pa.Schema, begin: Begin, take: Take) -> None:
        begin(schema)
        conditions = [*wanted.conditions, *self._bounds(wanted)]
        query = CATALOG_TABLES[wanted.table].query(schema.names, conditions, self.store.rule)
        if wanted.limit is not None:
            query = query.limit(wanted.limit)
        with self.store.catalog.read() as session:
            for rows in session.parts_of(query, AT_ONCE):
                take(_batch(schema, rows))

    def _bounds(self, wanted: Wanted) -> list[Condition]:
        """Return conditions that the row's run is among few that were handed over of another table."""
        handed = [self.runs_handed[other] for other in wanted.runs_of if other in self.runs_handed]
        few = [tuple(sorted(run_id for run_id in runs if run_id)) for runs in handed if len(runs) <= FEW]
        return [Condition(RUN_ID, "=", runs) for runs in few]

    def _of_lake(self, wanted: Wanted, schema: pa.Schema, begin: Begin, take: Take) -> None:
        def ask(connection: duckdb.DuckDBPyConnection) -> None:
            self.until(connection.interrupt)
            source = self._jobs(connection) if wanted.table == JOBS.name else self._set(connection, wanted)
            conditions = [_sql(condition) for condition in wanted.conditions]
            where = " and ".join(text for text, _ in conditions) or "true"
            names = ", ".join(f'"{name}"' for name in schema.names)
            limit = "" if wanted.limit is None else f" limit {int(wanted.limit)}"
            sql = f"select {names} from {source} where {where}{limit}"  # noqa: S608 - checked names, bound values
            begin(schema)
            values = [value for _, bound in conditions for value in bound]
            for batch in connection.sql(sql, params=values).to_arrow_reader(AT_ONCE):
                take(batch.cast(schema))

        if wanted.table in self.store.lake.sets() or (wanted.table == JOBS.name and JOB.name in self.store.lake.sets()):
            self.store.lake.answer(ask)
        else:
            begin(schema)

    def _jobs(self, connection: duckdb.DuckDBPyConnection) -> str:
        """Return the jobs with names for pseudonyms, in SQL."""
        jobs = settled(self.store.lake.files(JOB.name), FACTS)
        users = connection.sql(f'select distinct "user" from ({jobs})').fetchall()  # noqa: S608 - our own text
        with self.store.catalog.read() as session:
            names = session.people.names([user for (user,) in users if user])
        named = pa.table({"pseudonym": list(names), "name": list(names.values())}, NAMES)
        connection.register("named", named)
        shown = "coalesce((select name from named where pseudonym = settled.user), settled.user)"
        return f'(select * replace ({shown} as "user") from ({jobs}) as settled)'  # noqa: S608 - as above

    def _set(self, connection: duckdb.DuckDBPyConnection, wanted: Wanted) -> str:
        """Return the rows of a set that may be seen and may matter, in base units, in SQL."""
        lake = self.store.lake
        stored = lake.columns(wanted.table)
        columns = ", ".join(converted(column) for column in stored.values())
        runs = self._runs(wanted) if OF_RUNS in stored else None
        if runs is None:
            return f"(select {columns} from {lake.files(wanted.table, _span(wanted))})"  # noqa: S608 - as above
        connection.register("runs_seen", pa.table({RUN_ID: sorted(runs)}, pa.schema([(RUN_ID, pa.string())])))
        few = runs if len(runs) <= AT_ONCE else None
        within = ALWAYS if few is None else self._time_of(few)
        files = lake.source(wanted.table, lake.parts(wanted.table, within, few))
        return f"(select {columns} from {files} where run_id in (select run_id from runs_seen))"  # noqa: S608 - as above

    def _runs(self, wanted: Wanted) -> set[str] | None:
        """Return the runs whose rows may be seen and may matter; None: all."""
        bounds = [self.runs_handed[other] for other in wanted.runs_of if other in self.runs_handed]
        bounds += [{str(value) for value in one.values} for one in wanted.conditions if _is_of_runs(one)]
        if not bounds and self.store.rule.sees_all:
            return None
        among = set.intersection(*bounds) if bounds else None
        return self._seen(among)

    def _seen(self, among: Collection[str] | None) -> set[str]:
        """Return the runs that may be seen, of all or of these; whoever sees all sees rows of unknown runs too."""
        if among is not None and self.store.rule.sees_all:
            return set(among)
        query = CATALOG_TABLES["runs"].query([RUN_ID], (), self.store.rule)
        with self.store.catalog.read() as session:
            if among is not None:
                return {run.run_id for run in session.runs.some(among)}
            return {row[0] for rows in session.parts_of(query, AT_ONCE) for row in rows}

    def _time_of(self, run_ids: Collection[str]) -> tuple[int, int]:
        with self.store.catalog.read() as session:
            runs = session.runs.some(run_ids)
        return time_of(runs) if len(runs) == len(run_ids) else ALWAYS


NAMES = pa.schema([("pseudonym", pa.string()), ("name", pa.string())])


def _batch(schema: pa.Schema, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return pa.record_batch([_array(one, column) for one, column in zip(schema, columns, strict=True)], schema)


def _array(one: pa.Field, values: Sequence[Any]) -> pa.Array:
    if one.name == "command":
        values = [_shown(text) for text in values]
    return pa.array(values, one.type)


def _shown(text: str | None) -> str | None:
    """Return a stored command without secrets, which may be older than their redaction on the way in."""
    return None if text is None else json.dumps(list(shown_words(json.loads(text))), ensure_ascii=False)


def _is_of_runs(condition: Condition) -> bool:
    return condition.column == RUN_ID and condition.operator == "="


def _sql(condition: Condition) -> tuple[str, list[Any]]:
    column, values = f'"{condition.column}"', list(condition.values)
    if condition.operator == "=":
        return f"{column} in ({', '.join('?' * len(values))})", values
    return f"{column} {condition.operator} ?", values


def _span(wanted: Wanted) -> tuple[int, int]:
    """Return the times of the rows that can matter, by the conditions on `ts_ns`."""
    first, last = ALWAYS
    for condition in wanted.conditions:
        if condition.column == "ts_ns":
            values = [int(value) for value in condition.values]
            first = max(first, min(values)) if condition.operator in ("=", ">", ">=") else first
            last = min(last, max(values)) if condition.operator in ("=", "<", "<=") else last
    return first, last
