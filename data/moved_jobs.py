"""Jobs that an earlier version kept in the catalog: they go to the lake, where the others are."""

import json
from typing import Any

from sqlalchemy import Connection, inspect, text

from crosswind.data.catalog.people import People
from crosswind.data.job import Job
from crosswind.data.jobs import job_table
from crosswind.data.lake import Lake

FORMER = "jobs_in_catalog"  # what migration 0005 calls their table, where there were any
PART = "jobs-of-catalog"
AS_FIRST_NS = 10**18  # told in 2001: whatever is told of them now holds


def move_jobs(connection: Connection, lake: Lake) -> None:
    """Moves them, if there are any; ended at any moment, it begins anew and doubles nothing."""
    if not inspect(connection).has_table(FORMER):
        return
    rows = [dict(row) for row in connection.execute(text(f"select * from {FORMER}")).mappings()]  # noqa: S608 - ours
    told = ({**row, "nodes": tuple(_json(row["nodes"])), "fields": _json(row["fields"])} for row in rows)
    jobs = [Job(**each) for each in told]
    lake.append(PART, People(connection).hidden(job_table(jobs, told_ns=AS_FIRST_NS)))
    connection.execute(text(f"drop table {FORMER}"))


def _json(value: Any) -> Any:
    """What the driver gives of a JSON column: SQLite its text, PostgreSQL what it stands for."""
    return json.loads(value) if isinstance(value, str) else value
