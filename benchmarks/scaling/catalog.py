"""A catalog with a million runs and ten million jobs, on SQLite and on PostgreSQL: processor time of each question.

Runs are filled in by the database itself, jobs (which are in the lake) by Arrow, a day at a time.
"""

import os
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
from sqlalchemy import text

from benchmarks.cluster.parts import postgres
from crosswind.data.catalog.runs import ANY_RUN, RunFilter
from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import arrow_schema
from crosswind.data.store.jobs import JOB, JobFilter
from crosswind.data.store.store import Store

RUNS = int(os.environ.get("CROSSWIND_BENCH_RUNS", "1000000"))
JOBS = int(os.environ.get("CROSSWIND_BENCH_JOBS", "10000000"))
SECOND, DAY = 10**9, 86_400 * 10**9
FIRST_NS = 1_735_689_600 * SECOND
DAYS, USERS, REPEATS = 365, 500, 5
_ID = "'run-' || substr(cast(100000000 + i as text), 2)"
_FILL = """
insert into runs (run_id, workload, system, state, world_size, configuration, job_id, nodes, started_ns, ended_ns,
    exit_code, command, software, tags, "user", cohort, reversed_id)
with recursive n(i) as (select {first} union all select i + 1 from n where i + 1 < {end})
select {id}, 'workload-' || (i % 5), 'system-' || (i % 2), case when i % 97 = 0 then 'failed' else 'completed' end, 2,
    {configuration}, cast(i as text), {nodes}, {began} + i * {every}, {began} + i * {every} + 60000000000,
    0, {empty}, {software}, {tags}, 'user' || (i % {users}), 'cohort-' || (i % 400), {reversed}
from n
"""
_NODES = """
insert into run_nodes (node, listed_ns, run_id)
with recursive n(i) as (select {first} union all select i + 1 from n where i + 1 < {end})
select 'n' || (i % 1000), {began} + i * {every}, {id} from n
"""
AT_ONCE = 100_000


def figures(folder: Path) -> dict[str, object]:
    """Return milliseconds of wall time of each question, the median of some repeats, and the catalog's size."""
    answer: dict[str, object] = {"catalog_runs": RUNS, "catalog_jobs": JOBS}
    with ExitStack() as kept:
        url, _ = kept.enter_context(postgres(folder / "postgres"))
        for name, database in (("sqlite", None), ("postgresql", url)):
            with Store.open(folder / name, database=database) as store:
                seconds = _seconds(lambda store=store: _fill(store))
                answer |= {
                    f"catalog_{name}_filled_seconds": round(seconds, 1),
                    f"catalog_{name}_bytes_a_run": _size(store),
                }
                answer |= {f"catalog_{name}_{key}_ms": took for key, took in _runs_asked(store).items()}
    with Store.open(folder / "jobs") as store:
        answer["jobs_filled_seconds"] = round(_seconds(lambda: _fill_jobs(store)), 1)
        size = sum(path.stat().st_size for path in (folder / "jobs/lake").rglob("*.parquet"))
        answer["jobs_bytes_a_job"] = round(size / JOBS, 1)
        answer |= {f"jobs_{key}_ms": took for key, took in _jobs_asked(store).items()}
    return answer


def _fill(store: Store) -> None:
    with store.catalog.write() as session:
        connection = session._connection
        is_sqlite = connection.dialect.name == "sqlite"
        for first in range(0, RUNS, AT_ONCE):
            places = {"first": first, "end": min(first + AT_ONCE, RUNS), "began": FIRST_NS, "id": _ID}
            places |= {"every": DAYS * DAY // RUNS, "users": USERS} | _texts(is_sqlite)
            for statement in (_FILL, _NODES):
                connection.exec_driver_sql(statement.format(**places))
        connection.execute(text("analyze"))


def _texts(is_sqlite: bool) -> dict[str, str]:
    """The JSON of a run, in the database's words."""
    kind = "" if is_sqlite else "::json"
    digits = " || ".join(f"substr({_ID}, {place}, 1)" for place in range(12, 0, -1))
    parts = {
        "configuration": """'{"batch": ' || (i % 4) || ', "precision": "bf16"}'""",
        "nodes": """'["n' || (i % 1000) || '"]'""",
        "empty": "'[]'",
        "software": """'{"torch": "2.9.0"}'""",
        "tags": "'{}'",
    }
    return {name: f"({part}){kind}" for name, part in parts.items()} | {"reversed": digits}


def _size(store: Store) -> int:
    with store.catalog.read() as session:
        connection = session._connection
        is_sqlite = connection.dialect.name == "sqlite"
        pages = "select page_count * page_size from pragma_page_count(), pragma_page_size()"
        size = connection.execute(text(pages if is_sqlite else "select pg_database_size(current_database())")).scalar()
    return round((size or 0) / RUNS)


def _runs_asked(store: Store) -> dict[str, float]:
    middle = f"run-{RUNS // 2:08}"
    filters = {
        "newest_50": ANY_RUN,
        "of_user": RunFilter(user="user7"),
        "of_node": RunFilter(node="n7"),
        "failed": RunFilter(state="failed"),  # type: ignore[arg-type]
        "of_a_day": RunFilter(since_ns=FIRST_NS + 100 * DAY, until_ns=FIRST_NS + 101 * DAY),
    }

    def asked(wanted: RunFilter) -> object:
        with store.catalog.read() as session:
            return session.runs.find(wanted, limit=50)

    for name, wanted in filters.items():
        if not asked(wanted):
            raise SystemExit(f"no runs: {name}")

    def one() -> object:
        with store.catalog.read() as session:
            return session.runs.get(middle)

    return {name: _median(lambda wanted=wanted: asked(wanted)) for name, wanted in filters.items()} | {
        "one": _median(one)
    }


def _fill_jobs(store: Store) -> None:
    with store.catalog.write() as session:
        people = session.people.pseudonyms([f"user{number}" for number in range(USERS)])
    pseudonyms = pa.array(list(people.values()))
    a_day = -(-JOBS // DAYS)
    for day in range(DAYS):
        store.lake.append(f"jobs-{day}", _jobs(np.arange(day * a_day, min((day + 1) * a_day, JOBS)), pseudonyms))
    compact(store.lake, settle_seconds=-1, now_ns=FIRST_NS + (DAYS + 3) * DAY)


def _jobs(numbers: np.ndarray, pseudonyms: pa.Array) -> pa.Table:
    schema, count = arrow_schema(JOB), len(numbers)
    random = np.random.default_rng(int(numbers[0]))  # what is too regular would be stored in next to nothing
    began = FIRST_NS + numbers * (DAYS * DAY // JOBS) + random.integers(0, SECOND // 2, count)
    took = random.integers(1, 86_400, count)
    texts = pa.array(numbers.astype(str))
    columns = {
        "ts_ns": pa.array(began + SECOND),
        "system": pa.array(["hpc"] * count),
        "job_id": texts,
        "name": pa.array(["train", "solve", "post", "test"]).take(pa.array(numbers % 4)),
        "user": pseudonyms.take(pa.array(random.integers(0, USERS, count))),
        "account": pa.array(["a", "b", "c"]).take(pa.array(numbers % 3)),
        "state": pa.array(["COMPLETED", "FAILED"]).take(pa.array((numbers % 20 == 0).astype(int))),
        "nodes": pa.array([f"n{number}" for number in range(1000)]).take(pa.array(random.integers(0, 1000, count))),
        "node_count": pa.array(np.ones(count, "int64")),
        "cpu_count": pa.array(np.full(count, 64)),
        "submitted_ns": pa.array(began - random.integers(1, 3600, count) * SECOND),
        "started_ns": pa.array(began),
        "ended_ns": pa.array(began + took * SECOND),
        "elapsed_seconds": pa.array(took.astype(float)),
    }
    return pa.table([columns.get(one.name, pa.nulls(count, one.type)) for one in schema], schema=schema)


def _jobs_asked(store: Store) -> dict[str, float]:
    middle = str(JOBS // 2)
    if (stored := store.jobs.count()) != JOBS or [job.job_id for job in store.jobs.named(middle)] != [middle]:
        raise SystemExit(f"{stored} jobs are stored, expected {JOBS}, and among them {middle}")
    lists = {"newest_50": JobFilter(), "of_user": JobFilter(user="user7")}
    asked = {name: _median(lambda wanted=wanted: store.jobs.find(wanted, limit=50)) for name, wanted in lists.items()}
    return asked | {"one": _median(lambda: store.jobs.named(middle))}


def _median(call: Callable[[], object]) -> float:
    return round(statistics.median(_seconds(call) for _ in range(REPEATS)) * 1e3, 2)


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
