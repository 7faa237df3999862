"""Jobs that an earlier version kept in the catalog: they go to the lake, where the others are."""

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, inspect, text

from crosswind.data.catalog.people import People
from crosswind.data.lake.lake import Lake
from crosswind.data.schema.job import Job
from crosswind.data.store.jobs import job_table

FORMER = "jobs_in_catalog"  # what migration 0005 calls their table, where there were any
PART = "jobs-of-catalog"
AT_ONCE = 20_000  # some 250 MB of them
AS_FIRST_NS = 10**18  # told in 2001: whatever is told of them now holds


def move_jobs(connection: Connection, lake: Lake, *, at_once: int = AT_ONCE) -> None:
    """Moves them, if there are any; ended at any moment, it begins anew and doubles nothing."""
    if not inspect(connection).has_table(FORMER):
        return
    for number, rows in enumerate(_blocks(connection, at_once)):
        jobs = ({**row, "nodes": tuple(_json(row["nodes"])), "fields": _json(row["fields"])} for row in rows)
        table = job_table([Job(**job) for job in jobs], told_ns=AS_FIRST_NS + number * at_once)
        lake.append(f"{PART}-{number}", People(connection).hidden(table))
    connection.execute(text(f"drop table {FORMER}"))


def _blocks(connection: Connection, at_once: int) -> Iterator[list[dict[str, Any]]]:
    """The rows in the order of their key, the same ones together each time."""
    after, where = {"system": "", "job_id": "", "at_once": at_once}, "true"
    while True:
        sql = f"select * from {FORMER} where {where} order by system, job_id limit :at_once"  # noqa: S608 - ours
        rows = [dict(row) for row in connection.execute(text(sql), after).mappings()]
        if rows:
            yield rows
        if len(rows) < at_once:
            return
        after |= {name: rows[-1][name] for name in ("system", "job_id")}
        where = "(system, job_id) > (:system, :job_id)"


def _json(value: Any) -> Any:
    """Return the value of a JSON column from what the driver gives: SQLite its text, PostgreSQL what it stands for."""
    return json.loads(value) if isinstance(value, str) else value
