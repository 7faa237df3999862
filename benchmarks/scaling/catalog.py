"""A catalog with a million runs and ten million jobs, on SQLite and on PostgreSQL: processor time of each question.

Runs are filled in by the database itself, jobs (which are in the lake) by Arrow, a day at a time.
"""

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from sqlalchemy import text

from benchmarks.cluster.parts import postgres
from benchmarks.scaling.ingest import tree_seconds
from crosswind.data.catalog.runs import ANY_RUN, RunFilter
from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import arrow_schema
from crosswind.data.store.jobs import JOB, JobFilter
from crosswind.data.store.store import Store

RUNS = int(os.environ.get("CROSSWIND_BENCH_RUNS", "1000000"))
JOBS = int(os.environ.get("CROSSWIND_BENCH_JOBS", "10000000"))
SECOND, DAY = 10**9, 86_400 * 10**9
FIRST_NS = 1_735_689_600 * SECOND
DAYS, USERS = 365, 500
REPEATS, REPEATS_MAX, ENOUGH_SECONDS = 3, 200, 1.0  # of each question
Question = Callable[[], object]
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
_BATCHES = """
insert into ingest_batches (batch_id, origin, received_ns, rows, skipped)
with recursive n(i) as (select {first} union all select i + 1 from n where i + 1 < {end})
select md5(cast(i as text)) || md5(cast(-i as text)),
    '00000' || ({began} + i) || '.agent.node' || (10000 + i % 10000) || '.segment', {began} + i, 4920, 0
from n
"""
AT_ONCE = 100_000


def figures(folder: Path) -> dict[str, object]:
    """Return milliseconds of processor time of each question, here and in PostgreSQL, and the catalog's size."""
    answer: dict[str, object] = {"catalog_runs": RUNS, "catalog_jobs": JOBS}
    with Store.open(folder / "sqlite") as store:
        answer |= _figures("sqlite", store, None)
    shutil.rmtree(folder / "sqlite")
    with postgres(folder / "postgres") as (url, postmaster), Store.open(folder / "store", database=url) as store:
        answer |= _figures("postgresql", store, postmaster)
        answer |= _batches(store, postmaster)
        answer["jobs_filled_seconds"] = round(_seconds(lambda: _fill_jobs(store)), 1)
        size = sum(path.stat().st_size for path in (folder / "store/lake").rglob("*.parquet"))
        answer["jobs_bytes_a_job"] = round(size / JOBS, 1)
        answer |= _costs("jobs", _job_questions(store), postmaster)
    return answer


def _figures(name: str, store: Store, postmaster: int | None) -> dict[str, object]:
    seconds = round(_seconds(lambda: _fill(store)), 1)
    sizes = {f"catalog_{name}_filled_seconds": seconds, f"catalog_{name}_bytes_a_run": _size(store)}
    return sizes | _costs(f"catalog_{name}", _run_questions(store), postmaster)


def _fill(store: Store) -> None:
    is_sqlite = store.catalog.engine.dialect.name == "sqlite"
    texts = {"id": _ID, "every": DAYS * DAY // RUNS, "users": USERS} | _texts(is_sqlite)
    _run(store, (_FILL, _NODES), texts)


def _run(store: Store, statements: Sequence[str], texts: Mapping[str, object]) -> None:
    """Let the database make rows, some at a time."""
    with store.catalog.write() as session:
        for first in range(0, RUNS, AT_ONCE):
            places = {"first": first, "end": min(first + AT_ONCE, RUNS), "began": FIRST_NS, **texts}
            for statement in statements:
                session._connection.exec_driver_sql(statement.format(**places))
        session._connection.execute(text("analyze"))


def _batches(store: Store, postmaster: int) -> dict[str, object]:
    """Note as many batches as there are runs; return their bytes, and what their sum costs, which /metrics has."""
    before = _size(store)
    _run(store, (_BATCHES,), {})

    def summed() -> object:
        with store.catalog.read() as session:
            return session.ingested()

    return {"catalog_batch_bytes": _size(store) - before} | _costs("catalog", {"batches": summed}, postmaster)


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


def _run_questions(store: Store) -> dict[str, Question]:
    filters = {
        "newest_50": ANY_RUN,
        "of_user": RunFilter(user="user7"),
        "of_node": RunFilter(node="n7"),
        "failed": RunFilter(state="failed"),  # type: ignore[arg-type]
        "failed_of_user_and_workload": RunFilter(user="user7", workload="workload-2", state="failed"),  # type: ignore[arg-type]
        "of_a_day": RunFilter(since_ns=FIRST_NS + 100 * DAY, until_ns=FIRST_NS + 101 * DAY),
    }

    def asked(wanted: RunFilter) -> object:
        with store.catalog.read() as session:
            return session.runs.find(wanted, limit=50)

    def one() -> object:
        with store.catalog.read() as session:
            return session.runs.get(f"run-{RUNS // 2:08}")

    return {name: partial(asked, wanted) for name, wanted in filters.items()} | {"one": one}


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


def _job_questions(store: Store) -> dict[str, Question]:
    middle = str(JOBS // 2)
    if (stored := store.jobs.count()) != JOBS or [job.job_id for job in store.jobs.named(middle)] != [middle]:
        raise SystemExit(f"{stored} jobs are stored, expected {JOBS}, and among them {middle}")
    filters = {
        "newest_50": JobFilter(),
        "of_user": JobFilter(user="user7"),
        "failed": JobFilter(state="FAILED"),
        "of_a_day": JobFilter(since_ns=FIRST_NS + 100 * DAY, until_ns=FIRST_NS + 101 * DAY),
    }
    lists = {name: partial(store.jobs.find, wanted, limit=50) for name, wanted in filters.items()}
    return lists | {"one": partial(store.jobs.named, middle)}


def _costs(kind: str, questions: dict[str, Question], postmaster: int | None) -> dict[str, object]:
    """Return of each question the processor time of this process and of PostgreSQL. Raises: SystemExit without rows."""
    answer: dict[str, object] = {}
    for name, ask in questions.items():
        if not ask():
            raise SystemExit(f"{kind}: nothing is {name}")
        here, there = _cost(ask, postmaster)
        answer[f"{kind}_{name}_cpu_ms"] = round(here, 2)
        if postmaster is not None:
            answer[f"{kind}_{name}_postgres_cpu_ms"] = round(there, 2)
    return answer


def _cost(ask: Question, postmaster: int | None) -> tuple[float, float]:
    begin, base, times = time.process_time(), _base(postmaster), 0
    while times < REPEATS or (times < REPEATS_MAX and time.process_time() - begin < ENOUGH_SECONDS):
        ask()
        times += 1
    return (time.process_time() - begin) / times * 1e3, (_base(postmaster) - base) / times * 1e3


def _base(postmaster: int | None) -> float:
    return 0.0 if postmaster is None else tree_seconds(postmaster)


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
