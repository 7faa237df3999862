"""The scheduler's accounts of jobs, in the lake: years of them; of a job the last one holds.

Every row is one account of one job as it was reported at one time. A job that is reported again has several rows, which
queries put together. Users are there by pseudonyms, whose names are in the catalog.
"""

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.lake.lake import Lake, to_table
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.hostlist import expand
from crosswind.data.schema.job import Job
from crosswind.data.schema.metric import Column, Kind, MetricSet
from crosswind.data.schema.part import Part
from crosswind.data.schema.run import new_ulid
from crosswind.data.store.job_accounts import settled


def _fact(name: str, description: str, dtype: str = "string", unit: str = "") -> Column:
    return Column(name, description, Kind.FACT, dtype, unit)


JOB = MetricSet(
    "job",
    "One account of one job by its scheduler.",
    (
        Column("ts_ns", "when this account was reported; of two of a job, the later one holds", Kind.KEY, unit="ns"),
        Column("system", "the cluster", Kind.KEY, "string"),
        Column("job_id", "the scheduler's name of the job", Kind.KEY, "string"),
        _fact("name", "what the user called it"),
        _fact("user", "pseudonym of its user"),
        _fact("account", "who pays"),
        _fact("partition", "queue that it was in"),
        _fact("state", "the scheduler's word"),
        _fact("exit_code", "null while it runs", "int64"),
        _fact("signal", "that ended it", "int64"),
        _fact("nodes", "host names, in the short form of Slurm"),
        _fact("node_count", "nodes that it had", "int64", "1"),
        _fact("cpu_count", "CPUs that it had", "int64", "1"),
        _fact("submitted_ns", "UTC", "int64", "ns"),
        _fact("started_ns", "UTC", "int64", "ns"),
        _fact("ended_ns", "UTC", "int64", "ns"),
        _fact("elapsed_seconds", "wall time, without what it was suspended for", "float64", "s"),
        _fact("energy_joules", "of its nodes; null where nobody measured", "float64", "J"),
        _fact("fields", "what else was reported, a JSON object of texts"),
    ),
)
FACTS = tuple(column.name for column in JOB.columns if column.name != "ts_ns")
_PLACE = ("coalesce(started_ns, 0)", "system", "job_id")
_PLACED = f"({', '.join(_PLACE)})"
_AMONG = "job_id in (select unnest(?))"
_Row = dict[str, Any]
_Condition = tuple[str, list[object]]  # in SQL, and its parameters
_Rows = Callable[[str, Sequence[object]], list[_Row]]
LOOKED_AT = 4  # accounts for each job that is wanted: most jobs are reported less often


def job_table(jobs: Sequence[Job], *, reported_ns: int) -> pa.Table:
    """Accounts as rows of the set, of which a later one holds; `reported_ns` is the first one's, the others' follow."""
    columns: dict[str, list[Any]] = {name: [getattr(job, name) for job in jobs] for name in FACTS}
    columns["nodes"] = [",".join(job.nodes) for job in jobs]
    columns["fields"] = [json.dumps(dict(job.fields), ensure_ascii=False) if job.fields else None for job in jobs]
    return to_table(JOB, {"ts_ns": list(range(reported_ns, reported_ns + len(jobs))), **columns})


@dataclass(frozen=True)
class JobFilter:
    """Conditions that the wanted jobs meet; None asks for all.

    They began at `since_ns` or later, and before `until_ns`.
    """

    name: str | None = None
    system: str | None = None
    user: str | None = None
    state: str | None = None
    account: str | None = None
    job_id: str | None = None
    since_ns: int | None = None
    until_ns: int | None = None


ANY_JOB = JobFilter()
EQUAL = ("name", "system", "user", "state", "account", "job_id")  # conditions that a column has this value


@dataclass(frozen=True)
class JobSpan:
    """The nodes and the times of a job."""

    system: str
    job_id: str
    nodes: str  # in the short form
    started_ns: int
    ended_ns: int


class Jobs:
    """The jobs of one store."""

    def __init__(self, lake: Lake, catalog: Catalog) -> None:
        self._lake = lake
        self._catalog = catalog

    def put(self, *jobs: Job) -> None:
        """Stores accounts of jobs, all at once, on the disk when it returns."""
        if not jobs:
            return
        with self._catalog.write() as session:
            table = session.people.hidden(job_table(jobs, reported_ns=time.time_ns()))
        self._lake.append(f"accounts-{new_ulid()}", table)

    def get(self, system: str, job_id: str) -> Job | None:
        """One job, if it is known."""
        return next(iter(self._newest("system = ? and job_id = ?", [system, job_id])), None)

    def named(self, job_id: str) -> list[Job]:
        """The jobs of this id, one a system."""
        return self.all_named([job_id]).get(job_id, [])

    def all_named(self, job_ids: Collection[str]) -> Mapping[str, list[Job]]:
        """The jobs of these ids, by id and system."""
        by_id: dict[str, list[Job]] = {}
        if job_ids:
            for job in self._newest(_AMONG, [sorted(job_ids)], "order by system"):
                by_id.setdefault(job.job_id, []).append(job)
        return by_id

    def of_name(self, name: str, *, system: str | None, limit: int) -> list[Job]:
        """The newest jobs that their users called so, oldest first; without a system, of all of them."""
        here = "($2 is null or system = $2)"
        among = f"job_id in (select job_id from job where name = $1 and {here}) and {here}"  # noqa: S608
        sql = f"{_settled(among)} where name = $1 order by {_PLACED} desc limit {int(limit)}"
        return self._jobs(self._answer(lambda rows: rows(sql, [name, system])))[::-1]

    def find(self, wanted: JobFilter = ANY_JOB, *, before: tuple[int, str, str] | None = None, limit: int) -> list[Job]:
        """Jobs, newest first; `before` is the (started_ns or 0, system, job_id) of the last one seen."""
        return self.part(wanted, Part(limit, descending=True, after=before))

    def part(self, wanted: JobFilter, part: Part) -> list[Job]:
        """Return a part of the jobs in the order of (started_ns, system, job_id); one that waits counts as of 0."""
        if wanted.user is not None:
            with self._catalog.read() as session:
                wanted = replace(wanted, user=session.people.pseudonym(wanted.user) or wanted.user)
        return self._jobs(self._answer(lambda rows: _first_jobs(rows, part, wanted)))

    def newest_spans(self, *, limit: int) -> list[JobSpan]:
        """Return where and when the newest jobs ran, newest first; those of which it is not known are left out."""
        names = ("system", "job_id", "nodes", "started_ns", "ended_ns")
        jobs = self._answer(lambda rows: _first_jobs(rows, Part(limit, descending=True)))
        facts = [[job[name] for name in names] for job in jobs]
        return [JobSpan(*values) for values in facts if None not in values]

    def all(self) -> Iterator[Job]:
        """Every job, oldest first."""
        yield from self._newest("true", [], f"order by {_PLACED}")

    def count(self) -> int:
        """Return how many jobs are known."""
        if JOB.name not in self._lake.sets():
            return 0
        return int(self._lake.frame("select count(distinct (system, job_id)) as jobs from job").jobs.iloc[0])

    def running(self, system: str) -> int:
        """Return how many jobs of a system run, by their accounts."""
        among = "system = $1 and job_id in (select job_id from job where system = $1 and state = 'RUNNING')"
        sql = f"select count(*) as jobs {_settled(among)} where state = 'RUNNING'"
        return next((int(row["jobs"]) for row in self._answer(lambda rows: rows(sql, [system]))), 0)

    def _newest(self, where: str, parameters: Sequence[object], order: str = "") -> list[Job]:
        return self._jobs(self._answer(lambda rows: rows(f"{_settled(where)} {order}", parameters)))

    def _answer(self, question: Callable[[_Rows], list[_Row]]) -> list[_Row]:
        """Return the question's answer over the accounts, in one look at them."""
        if JOB.name not in self._lake.sets():
            return []

        def ask(connection: duckdb.DuckDBPyConnection) -> list[_Row]:
            connection.execute(f"create temp view job as select * from {self._lake.files(JOB.name)}")  # noqa: S608
            return question(lambda sql, parameters: _rows(connection, sql, parameters))

        return self._lake.answer(ask)

    def _jobs(self, rows: Sequence[_Row]) -> list[Job]:
        with self._catalog.read() as session:
            names_of = session.people.names({row["user"] for row in rows if row["user"]})
        return [_job(row, names_of) for row in rows]


def _rows(connection: duckdb.DuckDBPyConnection, sql: str, parameters: Sequence[object]) -> list[_Row]:
    rows: list[_Row] = connection.sql(sql, params=list(parameters)).to_arrow_table().to_pylist()
    return rows


def _settled(where: str) -> str:
    return f"from ({settled('job', FACTS, where=where)})"


def _first_jobs(rows: _Rows, part: Part, wanted: JobFilter = ANY_JOB) -> list[_Row]:
    """Return jobs in the order of when they started: accounts first, without those that another one replaced.

    A job with these facts has an account with each of them, which need not be the one of its start.
    """
    facts = {name: value for name in EQUAL if (value := getattr(wanted, name)) is not None}
    conditions = [(f'job_id in (select job_id from job where "{name}" = ?)', [value]) for name, value in facts.items()]  # noqa: S608
    conditions += [*_between(wanted.since_ns, wanted.until_ns), *_behind(part)]
    where = " and ".join(text for text, _ in conditions) or "true"
    parameters = [value for _, values in conditions for value in values]
    order = f"{_PLACED} desc" if part.descending else _PLACED
    looked_at = LOOKED_AT * part.limit
    while True:
        sql = f"select {', '.join(_PLACE)} from job where {where} order by {order} limit {int(looked_at)}"  # noqa: S608
        first = [tuple(row.values()) for row in rows(sql, parameters)]
        jobs = [job for job in _jobs_at(rows, set(first), order) if facts.items() <= job.items()]
        if len(jobs) >= part.limit or len(first) < looked_at:
            return jobs[: part.limit]
        looked_at *= LOOKED_AT


def _between(since_ns: int | None, until_ns: int | None) -> list[_Condition]:
    bounds = ((">=", since_ns), ("<", until_ns))
    return [(f"{_PLACE[0]} {sign} ?", [bound]) for sign, bound in bounds if bound is not None]


def _behind(part: Part) -> list[_Condition]:
    """Return the conditions that an account lies behind the part's place."""
    if part.after is None:
        return []
    began, *names = part.after
    sign = "<" if part.descending else ">"
    return [(f"{_PLACE[0]} {sign}= ? and {_PLACED} {sign} (?, ?, ?)", [began or 0, began or 0, *names])]


def _jobs_at(rows: _Rows, places: Collection[tuple[int, str, str]], order: str) -> list[_Row]:
    """The jobs whose present places these are, in this order."""
    ids = sorted({job_id for _, _, job_id in places})
    candidates = rows(f"{_settled(_AMONG)} order by {order}", [ids]) if places else []
    return [row for row in candidates if (row["started_ns"] or 0, row["system"], row["job_id"]) in places]


def _job(row: Mapping[str, Any], names_of: Mapping[str, str]) -> Job:
    """The job of a row; a row that another version wrote may hold what is no JSON. Raises: MalformedError."""
    try:
        fields = json.loads(row["fields"]) if row["fields"] else {}
    except ValueError as error:
        raise MalformedError(f"job {row['job_id']!r:.80}: fields {row['fields']!r:.80} is no JSON") from error
    texts = {name: row[name] or "" for name in ("name", "state")}
    user = names_of.get(row["user"], row["user"])
    return Job(**{**row, **texts, "user": user, "nodes": expand(row["nodes"] or ""), "fields": fields})
