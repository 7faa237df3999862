"""Accounts of jobs that tell something new: a scheduler that is asked every minute repeats itself."""

import time

import duckdb
import numpy as np
import pyarrow as pa

from crosswind.data.jobs import FACTS, JOB
from crosswind.data.run import new_ulid
from crosswind.data.store import Store

RUNNING_ON = ("elapsed_seconds", "energy_joules", "fields")  # grow while a job runs: no news until it ends
_LAST = "qualify row_number() over (partition by system, job_id order by ts_ns desc) = 1"


def put_changed(store: Store, told: pa.Table) -> int:
    """Stores the rows of the set that differ from what is known of their jobs, the last one of each; how many.

    `told` has the names of users, as a reader gives them.
    """
    with store.catalog.write() as session:
        hidden = session.people.hidden(told)
    news = store.lake.answer(lambda connection: _news(store, connection, hidden))
    if len(news):
        now_ns = time.time_ns()
        times = pa.array(np.arange(now_ns, now_ns + len(news)), pa.int64())
        store.lake.append(f"told-{new_ulid()}", news.set_column(0, told.schema.field(0), times))
    return len(news)


def _news(store: Store, connection: duckdb.DuckDBPyConnection, told: pa.Table) -> pa.Table:
    numbered = told.set_column(0, told.schema.field(0), pa.array(np.arange(len(told)), pa.int64()))
    connection.register("numbered", numbered)
    connection.execute(f"create view told as select * from numbered {_LAST}")  # noqa: S608 - our own texts
    if JOB.name in store.lake.sets():
        some = f"select * from {store.lake.files(JOB.name)} where job_id in (select job_id from told)"  # noqa: S608
        connection.execute(f"create view kept as {some} {_LAST}")
    else:
        connection.execute("create view kept as select * from told where false")
    fresh = connection.sql(f"select told.* from told left join kept using (system, job_id) where {_DIFFERS}")  # noqa: S608
    return fresh.order("ts_ns").to_arrow_table().cast(told.schema)


def _differs() -> str:
    """In SQL: whether an account tells more than the one that is kept; an unknown end is one that is still to come."""
    plain = [name for name in FACTS if name not in ("system", "job_id", *RUNNING_ON)]
    changed = " or ".join(f'told."{name}" is distinct from kept."{name}"' for name in plain)
    ended = " or ".join(f'told."{name}" is distinct from kept."{name}"' for name in RUNNING_ON)
    return f"kept.job_id is null or {changed} or (told.ended_ns is not null and ({ended}))"


_DIFFERS = _differs()
