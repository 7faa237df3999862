"""The scheduler's accounts of jobs, in the lake: years of them; of a job the last one holds.

Every row is one account of one job as it was reported at one time. A job that is reported again has several rows, which
queries put together. Users are there by pseudonyms, whose names are in the catalog.
"""

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Self

import duckdb
import pyarrow as pa

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.lake.job_parts import Ids, JobPart, job_part, ranges_of, together
from crosswind.data.lake.lake import Lake, to_table
from crosswind.data.lake.parts import ALWAYS, COMPACTED
from crosswind.data.lake.storage import Filed
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
_Part = tuple[Filed, JobPart]
LOOKED_AT = 4  # accounts for each job that is wanted: most jobs are reported less often
ROWS_LOOKED_AT = 10_000  # at first, in the parts with the newest ones; LOOKED_AT times as many whenever it is too few
FEW = 16  # parts that are opened to know which jobs they name


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
        return next((job for job in self.named(job_id) if job.system == system), None)

    def named(self, job_id: str) -> list[Job]:
        """The jobs of this id, one a system."""
        return self.all_named([job_id]).get(job_id, [])

    def all_named(self, job_ids: Collection[str]) -> Mapping[str, list[Job]]:
        """The jobs of these ids, by id and system."""
        by_id: dict[str, list[Job]] = {}
        if job_ids:
            for job in self._jobs(self._answer(lambda accounts: accounts.settled_of(job_ids, "system"))):
                by_id.setdefault(job.job_id, []).append(job)
        return by_id

    def of_name(self, name: str, *, system: str | None, limit: int) -> list[Job]:
        """The newest jobs that their users called so, oldest first; without a system, of all of them."""
        return self.find(JobFilter(name=name, system=system), limit=limit)[::-1]

    def find(self, wanted: JobFilter = ANY_JOB, *, before: tuple[int, str, str] | None = None, limit: int) -> list[Job]:
        """Jobs, newest first; `before` is the (started_ns or 0, system, job_id) of the last one seen."""
        return self.part(wanted, Part(limit, descending=True, after=before))

    def part(self, wanted: JobFilter, part: Part) -> list[Job]:
        """Return a part of the jobs in the order of (started_ns, system, job_id); one that waits counts as of 0."""
        if wanted.user is not None:
            with self._catalog.read() as session:
                wanted = replace(wanted, user=session.people.pseudonym(wanted.user) or wanted.user)
        return self._jobs(self._answer(lambda accounts: _first_jobs(accounts, part, wanted)))

    def newest_spans(self, *, limit: int) -> list[JobSpan]:
        """Return where and when the newest jobs ran, newest first; those of which it is not known are left out."""
        names = ("system", "job_id", "nodes", "started_ns", "ended_ns")
        jobs = self._answer(lambda accounts: _first_jobs(accounts, Part(limit, descending=True), ANY_JOB))
        facts = [[job[name] for name in names] for job in jobs]
        return [JobSpan(*values) for values in facts if None not in values]

    def all(self) -> Iterator[Job]:
        """Every job, oldest first."""
        sql = f"{_settled('true')} order by {_PLACED}"
        yield from self._jobs(self._answer(lambda accounts: accounts.rows(sql, [])))

    def count(self) -> int:
        """Return how many jobs are known."""
        if JOB.name not in self._lake.sets():
            return 0
        return int(self._lake.frame("select count(distinct (system, job_id)) as jobs from job").jobs.iloc[0])

    def running(self, system: str) -> int:
        """Return how many jobs of a system run, by their accounts."""
        among = "system = $1 and job_id in (select job_id from job where system = $1 and state = 'RUNNING')"
        sql = f"select count(*) as jobs {_settled(among)} where state = 'RUNNING'"
        return next((int(row["jobs"]) for row in self._answer(lambda accounts: accounts.rows(sql, [system]))), 0)

    def _answer(self, question: Callable[["Accounts"], list[_Row]]) -> list[_Row]:
        """Return the question's answer over the accounts, in one look at them."""
        if JOB.name not in self._lake.sets():
            return []
        return self._lake.answer(lambda connection: question(Accounts.seen(self._lake, connection)))

    def _jobs(self, rows: Sequence[_Row]) -> list[Job]:
        with self._catalog.read() as session:
            names_of = session.people.names({row["user"] for row in rows if row["user"]})
        return [_job(row, names_of) for row in rows]


@dataclass(frozen=True)
class Accounts:
    """The accounts of jobs at one moment: parts that cannot matter are not opened."""

    lake: Lake
    connection: duckdb.DuckDBPyConnection
    parts: Sequence[_Part]

    @classmethod
    def seen(cls, lake: Lake, connection: duckdb.DuckDBPyConnection) -> Self:
        """Return what is stored now. Raises: MalformedError, UnavailableError."""
        files = lake.storage.listed(JOB.name, with_manifests=True)
        lake.storage.fetch([file for file in files if not COMPACTED.fullmatch(file.path.name)])
        return cls(lake, connection, [(file, job_part(file.path)) for file in files])

    def source(self, parts: Sequence[_Part]) -> str:
        """Return the accounts in these parts, in SQL."""
        return self.lake.files_among(JOB.name, [file for file, _ in parts])

    def rows(self, sql: str, parameters: Sequence[object], parts: Sequence[_Part] | None = None) -> list[_Row]:
        """Return what is asked of `job`, the accounts in these parts or in all."""
        source = self.source(self.parts if parts is None else parts)
        self.connection.execute(f"create or replace temp view job as select * from {source}")  # noqa: S608
        rows: list[_Row] = self.connection.sql(sql, params=list(parameters)).to_arrow_table().to_pylist()
        return rows

    def of_ids(self, ranges: Ids | None) -> list[_Part]:
        """Return the parts that may hold accounts of jobs with these numbers."""
        return [part for part in self.parts if part[1].may_hold_ids(ranges)]

    def settled_of(self, job_ids: Collection[str], order: str) -> list[_Row]:
        """Return the jobs of these ids, of which there is one at least."""
        parts = self.of_ids(ranges_of(job_ids))
        return self.rows(f"{_settled(_AMONG)} order by {order}", [sorted(job_ids)], parts)

    def at(self, places: Collection[tuple[int, str, str]], order: str) -> list[_Row]:
        """Return the jobs whose present places these are, in this order."""
        jobs = self.settled_of({job_id for _, _, job_id in places}, order) if places else []
        return [row for row in jobs if (row["started_ns"] or 0, row["system"], row["job_id"]) in places]

    def first_places(
        self, conditions: Sequence[_Condition], parts: Sequence[_Part], order: str, limit: int
    ) -> list[tuple[Any, ...]]:
        """Return the places of the first accounts in these parts that meet all conditions, as often as there are."""
        where = " and ".join(text for text, _ in conditions) or "true"
        sql = f"select {', '.join(_PLACE)} from job where {where} order by {order} limit {int(limit)}"  # noqa: S608
        rows = self.rows(sql, [value for _, values in conditions for value in values], parts)
        return [tuple(row.values()) for row in rows]

    def having(self, facts: Mapping[str, str], parts: Sequence[_Part]) -> Iterator[_Condition]:
        """Yield the conditions that a job of these parts has an account, in whichever part, with each fact."""
        ranges = together(part for _, part in parts)
        for name, value in facts.items():
            naming = [one for one in self.of_ids(ranges) if one[1].may_hold(name, value)]
            yield f'job_id in (select job_id from {self.source(naming)} where "{name}" = ?)', [value]  # noqa: S608

    def with_facts(self, facts: Mapping[str, str]) -> list[_Part]:
        """Return the parts that may hold accounts of jobs of which one account each has each of these facts."""
        parts = list(self.parts)
        for name, value in facts.items():
            ids = [value] if name == "job_id" else self._naming(name, value)
            if ids is not None:
                ranges = ranges_of(ids)
                parts = [part for part in parts if part[1].may_hold_ids(ranges)]
        return parts

    def _naming(self, name: str, value: str) -> list[str] | None:
        """Return the jobs of which an account has this fact; None where it would take too many parts to know them."""
        naming = [part for part in self.parts if part[1].may_hold(name, value)]
        if self.lake.is_cut or len(naming) > FEW:
            return None
        jobs = self.rows(f'select distinct job_id from job where "{name}" = ?', [value], naming)  # noqa: S608
        return [row["job_id"] for row in jobs]


def _settled(where: str) -> str:
    return f"from ({settled('job', FACTS, where=where)})"


def _first_jobs(accounts: Accounts, part: Part, wanted: JobFilter) -> list[_Row]:
    """Return jobs in the order of when they started: accounts first, without those that another one replaced.

    A job with these facts has an account with each of them, which need not be the one of its start. Parts with the
    newest accounts are looked at first, or with the oldest, and more of them until those that remain cannot matter.
    """
    facts = {name: value for name in EQUAL if (value := getattr(wanted, name)) is not None}
    ends = _ends(accounts.with_facts(facts), part, wanted)
    order = f"{_PLACED} desc" if part.descending else _PLACED
    looked_at = LOOKED_AT * part.limit
    rows_looked_at = ALWAYS[1] if accounts.lake.is_cut else max(ROWS_LOOKED_AT, looked_at)  # what cuts reads all
    while ends:
        parts, bound = _window(ends, rows_looked_at)
        conditions = [*_between(wanted.since_ns, wanted.until_ns), *_behind(part), *accounts.having(facts, parts)]
        if bound is not None:
            conditions.append((f"{_PLACE[0]} {'>' if part.descending else '<'} ?", [bound]))
        first = accounts.first_places(conditions, parts, order, looked_at)
        places = set(first)
        may_suffice = bound is None or len(places) >= part.limit
        jobs = [job for job in accounts.at(places, order) if facts.items() <= job.items()] if may_suffice else []
        if len(jobs) >= part.limit or (bound is None and len(first) < looked_at):
            return jobs[: part.limit]
        looked_at, rows_looked_at = LOOKED_AT * looked_at, LOOKED_AT * rows_looked_at
    return []


def _ends(parts: Sequence[_Part], part: Part, wanted: JobFilter) -> list[tuple[int, _Part]]:
    """Return the parts with accounts within the bounds, each with the place at which it may begin, in that order."""
    low_ns, high_ns = ALWAYS[0] if wanted.since_ns is None else wanted.since_ns, ALWAYS[1]
    if wanted.until_ns is not None:
        high_ns = wanted.until_ns - 1
    if part.after is not None and part.descending:
        high_ns = min(high_ns, int(part.after[0] or 0))
    elif part.after is not None:
        low_ns = max(low_ns, int(part.after[0] or 0))
    ends = [(one[1].end(low_ns, high_ns, is_last=part.descending), one) for one in parts]
    placed = [(end, one) for end, one in ends if end is not None]
    return sorted(placed, key=lambda one: one[0], reverse=part.descending)


def _window(ends: Sequence[tuple[int, _Part]], rows: int) -> tuple[list[_Part], int | None]:
    """Return the first parts, with so many rows, and the place at which those that remain begin; None without any."""
    sums = accumulate(part.rows for _, (_, part) in ends)
    count = 1 + sum(1 for total in sums if total < rows)
    return [one for _, one in ends[:count]], ends[count][0] if count < len(ends) else None


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


def _job(row: Mapping[str, Any], names_of: Mapping[str, str]) -> Job:
    """The job of a row; a row that another version wrote may hold what is no JSON. Raises: MalformedError."""
    try:
        fields = json.loads(row["fields"]) if row["fields"] else {}
    except ValueError as error:
        raise MalformedError(f"job {row['job_id']!r:.80}: fields {row['fields']!r:.80} is no JSON") from error
    texts = {name: row[name] or "" for name in ("name", "state")}
    user = names_of.get(row["user"], row["user"])
    return Job(**{**row, **texts, "user": user, "nodes": expand(row["nodes"] or ""), "fields": fields})
