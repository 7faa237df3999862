"""Runs and ranks in the catalog."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from typing import Any

from msgspec.json import decode
from sqlalchemy import Connection, Select, and_, func, select, tuple_, update

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.verdicts import Verdicts
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.run import Rank, Run, RunState, cohort_digest

CERTAINTY = {RunState.RUNNING: 0, RunState.LOST: 1, RunState.COMPLETED: 2, RunState.STOPPED: 3, RunState.FAILED: 4}
COLUMNS = [tables.runs.c[field.name] for field in fields(Run)]
OUTLINE = ("run_id", "workload", "system", "state", "world_size", "started_ns", "ended_ns")
PUT_AT_ONCE = 1000
SYSTEM_OF = 2000  # newest runs that say which system is meant where none is named
LAST_CHARACTER = "\U0010ffff"
PROCESS = ("node", "pid", "started_ns")  # of a rank: a process with another of these is another one


@dataclass(frozen=True)
class RunFilter:
    """Conditions that the wanted runs meet; None asks for all. `id_end` is the end of their ids."""

    workload: str | None = None
    system: str | None = None
    state: RunState | None = None
    job_id: str | None = None
    id_end: str | None = None


ANY_RUN = RunFilter()


class Runs:
    """Runs and their ranks, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._verdicts = Verdicts(connection)

    def merge(self, run: Run) -> None:
        """Stores what is now known of a run; an earlier, more certain fact is never overwritten by a vaguer one."""
        rows.hold(self._connection, run.run_id)
        stored = rows.fetch(self._connection, tables.runs, run_id=run.run_id)
        merged = run if stored is None else merge_runs(_run(stored), run)
        tags = {**merged.tags, **self._written_twice(run.run_id)}
        rows.upsert(self._connection, tables.runs, {**_row(merged), "tags": tags})
        self._verdicts.want([merged])

    def put_all(self, runs: Iterable[Run]) -> None:
        """Stores runs as they are, in place of what was stored of them; of two of one id the last one."""
        remaining = iter(runs)
        while some := {run.run_id: run for run in islice(remaining, PUT_AT_ONCE)}:
            rows.upsert_all(self._connection, tables.runs, [_row(run) for run in some.values()])
            self._verdicts.want(some.values())

    def lose(self, run_id: str) -> None:
        """Notes that a run without an end will not report one any more."""
        where = and_(tables.runs.c.run_id == run_id, tables.runs.c.state == RunState.RUNNING)
        lost = update(tables.runs).where(where).values(state=RunState.LOST)
        if self._connection.execute(lost.execution_options(preserve_rowcount=True)).rowcount:
            self._verdicts.want([self.get(run_id)])

    def merge_rank(self, rank: Rank) -> None:
        """Stores a rank; fields that are None keep what was known of the same process.

        Two processes that were one rank become a tag of the run, in whatever order they come: the earlier one is kept
        under a number below zero.
        """
        rows.hold(self._connection, rank.run_id)
        row = asdict(rank)
        stored = rows.fetch(self._connection, tables.ranks, run_id=rank.run_id, rank=rank.rank)
        if stored is None:
            rows.upsert(self._connection, tables.ranks, row)
            self._verdicts.want_again([rank.run_id])
        elif all(stored[name] == row[name] for name in PROCESS):
            merged = {name: stored[name] if value is None else value for name, value in row.items()}
            rows.upsert(self._connection, tables.ranks, merged)
        else:
            rows.upsert(self._connection, tables.ranks, {**stored, "rank": -1 - rank.rank})
            rows.upsert(self._connection, tables.ranks, row)
            self._tag(rank.run_id)
            self._verdicts.want_again([rank.run_id])

    def _tag(self, run_id: str) -> None:
        stored = rows.fetch(self._connection, tables.runs, run_id=run_id)
        if stored is not None:
            tags = {**stored["tags"], **self._written_twice(run_id)}
            rows.change(self._connection, tables.runs, {"run_id": run_id}, tags=tags)

    def _written_twice(self, run_id: str) -> dict[str, str]:
        """A tag for each rank that was two processes."""
        last, earlier = tables.ranks.alias().c, tables.ranks.alias().c
        is_pair = and_(last.run_id == earlier.run_id, last.rank == -1 - earlier.rank)
        query = select(last.rank, earlier.pid, last.pid).where(earlier.run_id == run_id, earlier.rank < 0, is_pair)
        pairs = self._connection.execute(query)
        return {f"rank{rank}_written_twice": f"by {one} and {other}" for rank, one, other in pairs}

    def stored(self, run_ids: Iterable[str]) -> list[str]:
        """Those of the runs that are in the catalog."""
        return [run_id for run_id in run_ids if rows.fetch(self._connection, tables.runs, run_id=run_id) is not None]

    def get(self, run_id: str) -> Run:
        """One run. Raises: NotFoundError."""
        row = rows.fetch(self._connection, tables.runs, run_id=run_id)
        if row is None:
            raise NotFoundError(f"run {run_id!r} is not in the catalog")
        return _run(row)

    def find(self, wanted: RunFilter = ANY_RUN, *, before: tuple[int, str] | None = None, limit: int) -> list[Run]:
        """Runs, newest first; `before` is the (started_ns, run_id) of the last one seen."""
        place = tuple_(tables.runs.c.listed_ns, tables.runs.c.run_id)
        query = _listed(_filtered(wanted)).limit(limit)
        if before is not None:
            query = query.where(place < tuple_(*before))
        return [_run(dict(row)) for row in self._connection.execute(query).mappings()]

    def near(self, run: Run, *, limit: int) -> list[str]:
        """Return ids of the other runs of its cohort: those that began nearest to it."""
        table = tables.runs
        place, began = tuple_(table.c.listed_ns, table.c.run_id), run.started_ns or 0
        cohort = select(table.c.run_id, table.c.listed_ns).where(table.c.cohort == cohort_digest(run))
        here = tuple_(began, run.run_id)
        earlier = _listed(cohort.where(place < here)).limit(limit)
        later = cohort.where(place > here).order_by(table.c.listed_ns, table.c.run_id).limit(limit)
        places = [row for side in (earlier, later) for row in self._connection.execute(side).all()]
        return [run_id for run_id, _ in sorted(places, key=lambda row: (abs(row[1] - began), row[0]))[:limit]]

    def some(self, run_ids: Collection[str]) -> list[Run]:
        """Return those of the runs that are stored, oldest first."""
        query = select(*COLUMNS).where(rows.among(self._connection, tables.runs.c.run_id, run_ids))
        runs = [_run(dict(row)) for row in self._connection.execute(query).mappings()]
        return sorted(runs, key=lambda run: (run.started_ns or 0, run.run_id))

    def ranks(self, run_id: str) -> list[Rank]:
        """The run's ranks in order."""
        of_run = and_(tables.ranks.c.run_id == run_id, tables.ranks.c.rank >= 0)
        query = select(tables.ranks).where(of_run).order_by(tables.ranks.c.rank)
        return [Rank(**row) for row in self._connection.execute(query).mappings()]

    def nodes_of_ranks(self, run_ids: Collection[str]) -> tuple[list[str], list[int], list[str]]:
        """Run, rank and node of every rank of these runs, a column each: tuples would take longer."""
        table = tables.ranks
        is_wanted = and_(rows.among(self._connection, table.c.run_id, run_ids), table.c.rank >= 0)
        ranks, nodes = (rows.gathered(self._connection, column) for column in (table.c.rank, table.c.node))
        query = select(table.c.run_id, ranks, nodes).where(is_wanted).group_by(table.c.run_id)
        columns: tuple[list[str], list[int], list[str]] = ([], [], [])
        for run_id, of_run, on_nodes in self._connection.execute(query).all():
            numbers = decode(of_run, type=list[int])
            columns[0].extend([run_id] * len(numbers))
            columns[1].extend(numbers)
            columns[2].extend(decode(on_nodes, type=list[str]))
        return columns

    def outlines(self, wanted: RunFilter, *, limit: int) -> list[Run]:
        """The newest runs, oldest first, without what takes time to decode: no configuration, nodes or other facts."""
        table = tables.runs
        columns = [table.c[name] for name in OUTLINE]
        query = _listed(_filtered(wanted).with_only_columns(*columns))
        newest = self._connection.execute(query.limit(limit)).all()
        rows_of = [dict(zip(OUTLINE, row, strict=True)) for row in newest[::-1]]
        return [Run(**{**row, "state": RunState(row["state"])}) for row in rows_of]

    def nodes_of_newest(self, system: str, *, limit: int) -> set[str]:
        """Return the nodes that the newest runs of a system ran on."""
        newest = _listed(select(tables.runs.c.nodes).where(tables.runs.c.system == system)).limit(limit)
        return {node for nodes in self._connection.execute(newest).scalars() for node in nodes}

    def cohorts(self) -> list[tuple[str, int, int]]:
        """For each cohort its workload, how many runs it has, and how many of them ended well."""
        table = tables.runs
        is_ended = and_(table.c.state == RunState.COMPLETED, table.c.ended_ns > table.c.started_ns)
        query = select(table.c.workload, func.count(), func.count().filter(is_ended))
        by_cohort = query.group_by(table.c.cohort, table.c.workload)
        return [(str(workload), int(runs), int(ended)) for workload, runs, ended in self._connection.execute(by_cohort)]

    def usual_system(self, wanted: RunFilter) -> str | None:
        """The system of most of the newest runs that match; None where none does."""
        table = tables.runs
        newest = _listed(_filtered(wanted).with_only_columns(table.c.system, table.c.listed_ns)).limit(SYSTEM_OF)
        rows_of = newest.subquery().c
        query = select(rows_of.system).group_by(rows_of.system)
        first = query.order_by(func.count().desc(), func.max(rows_of.listed_ns).desc()).limit(1)
        return self._connection.execute(first).scalar()

    def counts_by_job(self, job_ids: Collection[str]) -> dict[tuple[str, str], int]:
        """By system and job how many runs each of these jobs held."""
        table = tables.runs
        is_wanted = rows.among(self._connection, table.c.job_id, job_ids)
        query = select(table.c.system, table.c.job_id, func.count()).where(is_wanted)
        counts = self._connection.execute(query.group_by(table.c.system, table.c.job_id))
        return {(str(system), str(job_id)): int(count) for system, job_id, count in counts}

    def count(self) -> int:
        """Return how many runs are stored."""
        return int(self._connection.execute(select(func.count()).select_from(tables.runs)).scalar_one())

    def stand(self, wanted: RunFilter) -> tuple[int, int]:
        """Return how many runs match and their latest end, ns UTC or 0: both stand still while nothing comes new."""
        columns = _filtered(wanted).subquery().c
        query = select(func.count(), func.coalesce(func.max(columns.ended_ns), 0)).select_from(columns.run_id.table)
        count, newest = self._connection.execute(query).one()
        return int(count), int(newest)


def merge_runs(stored: Run, news: Run) -> Run:
    """Return what both records say together, whichever came first: None and empty add nothing.

    An end is not undone by a late start record; an exit code, seen from outside, is surer than what a rank says of
    itself; and a rank that names its workload, or its configuration, is surer than a command line.
    """
    facts = {name: value for name, value in vars(news).items() if value not in (None, "", (), {})}
    facts["state"] = news.state if _certainty(news) >= _certainty(stored) else stored.state
    facts["tags"] = {**stored.tags, **news.tags}
    facts["software"] = {**stored.software, **news.software}
    facts["facts"] = news.facts.over(stored.facts)
    if stored.workload and news.command:
        facts["workload"] = stored.workload
    if stored.configuration and news.command:
        facts["configuration"] = stored.configuration
    if stored.started_ns is not None and news.started_ns is not None:
        facts["started_ns"] = min(stored.started_ns, news.started_ns)
    if stored.ended_ns is not None and news.ended_ns is not None:
        facts["ended_ns"] = max(stored.ended_ns, news.ended_ns)
    return replace(stored, **facts)


def _certainty(run: Run) -> tuple[bool, int]:
    return run.exit_code is not None, CERTAINTY[run.state]


def _filtered(wanted: RunFilter) -> Select[Any]:
    return filtered(select(*COLUMNS), wanted)


def filtered(query: Select[Any], wanted: RunFilter) -> Select[Any]:
    """Return a query of the table of runs for those that match."""
    for name, value in vars(wanted).items():
        if value is not None and name != "id_end":
            query = query.where(tables.runs.c[name] == value)
    if wanted.id_end is not None:
        begin = wanted.id_end[::-1]
        query = query.where(tables.runs.c.reversed_id.between(begin, begin + LAST_CHARACTER))
    return query


def _listed(query: Select[Any]) -> Select[Any]:
    """Return the runs newest first, as indexes have them."""
    return query.order_by(tables.runs.c.listed_ns.desc(), tables.runs.c.run_id.desc())


def _row(run: Run) -> dict[str, Any]:
    derived = {"cohort": cohort_digest(run), "reversed_id": run.run_id[::-1]}
    return {**asdict(run), "facts": run.facts.given, **derived}


def _run(row: Mapping[str, Any]) -> Run:
    lists = {"nodes": tuple(row["nodes"]), "command": tuple(row["command"])}
    own = {column.name: row[column.name] for column in COLUMNS}
    return Run(**{**own, **lists, "state": RunState(row["state"]), "facts": Facts(**row["facts"])})
