"""Accounts of jobs that say something new: a scheduler that is polled every minute repeats itself."""

import time

import duckdb
import numpy as np
import pyarrow as pa

from crosswind.data.lake.job_parts import ranges_of
from crosswind.data.schema.run import new_ulid
from crosswind.data.store.job_accounts import KEYS, settled
from crosswind.data.store.jobs import FACTS, JOB, Accounts
from crosswind.data.store.run_owners import settle_owners
from crosswind.data.store.store import Store

RUNNING_ON = ("elapsed_seconds", "energy_joules", "fields")  # grow while a job runs: no news until it ends


def put_changed(store: Store, rows: pa.Table) -> int:
    """Stores an account of each job that the rows of the set make another one than it was; how many.

    `rows` has the names of users, as a reader gives them; of two rows of a job, the later one is newer.
    """
    with store.catalog.write() as session:
        hidden = session.people.hidden(rows)
    news = store.lake.answer(lambda connection: _news(store, connection, hidden))
    if len(news):
        store.lake.append(f"accounts-{new_ulid()}", news)
        settle_owners(store)
    return len(news)


def _news(store: Store, connection: duckdb.DuckDBPyConnection, rows: pa.Table) -> pa.Table:
    now_ns = time.time_ns()
    times = pa.array(np.arange(now_ns, now_ns + len(rows)), pa.int64())
    connection.register("accounts", rows.set_column(0, rows.schema.field(0), times))
    names = ", ".join(f'"{name}"' for name in rows.column_names)
    once = settled("accounts", (*FACTS, "ts_ns"))
    connection.execute(f"create temp table reported as select {names} from ({once})")  # noqa: S608 - our own texts
    stored = "select * from reported where false"
    if JOB.name in store.lake.sets():
        seen = Accounts.seen(store.lake, connection)
        source = seen.source(seen.of_ids(ranges_of(rows["job_id"].unique().to_pylist())))
        stored = f"select * from {source} where job_id in (select job_id from reported)"  # noqa: S608
    connection.execute(f"create temp table stored as select {names} from ({stored})")  # noqa: S608
    connection.execute("create temp view together as from stored union all from reported")
    return connection.sql(_NEWS).to_arrow_table().cast(rows.schema)


def _differs() -> str:
    """In SQL: whether a job became another one than it was; an unknown end is one that is still to come."""
    plain = [name for name in FACTS if name not in (*KEYS, *RUNNING_ON)]
    changed = " or ".join(f'after."{name}" is distinct from before."{name}"' for name in plain)
    ended = " or ".join(f'after."{name}" is distinct from before."{name}"' for name in RUNNING_ON)
    return f"before.job_id is null or {changed} or (after.ended_ns is not null and ({ended}))"


_NEWS = f"""
    select reported.* from reported
    join ({settled("together", FACTS)}) as after using (system, job_id)
    left join ({settled("stored", FACTS)}) as before using (system, job_id)
    where {_differs()} order by reported.ts_ns
"""  # noqa: S608 - our own texts
