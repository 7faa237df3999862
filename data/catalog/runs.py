"""Runs in the catalog."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from typing import Any

from msgspec.json import decode
from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Text,
    and_,
    cast,
    delete,
    exists,
    false,
    func,
    not_,
    or_,
    select,
    true,
    tuple_,
    union_all,
    update,
)

from crosswind.data.catalog import rows, run_nodes, tables
from crosswind.data.catalog.keyset import place_of
from crosswind.data.catalog.live.events import Events
from crosswind.data.catalog.live.notes import Notes
from crosswind.data.catalog.ranks import written_twice
from crosswind.data.catalog.seen import are_seen, is_own, is_seen, newest_seen, of_seen_runs
from crosswind.data.catalog.verdicts import Verdicts
from crosswind.data.schema.access import ALL_ROWS, RowRule
from crosswind.data.schema.errors import ForbiddenError, NotFoundError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.part import Part
from crosswind.data.schema.redaction import shown_words
from crosswind.data.schema.run import Run, RunState, cohort_digest

CERTAINTY = {RunState.RUNNING: 0, RunState.LOST: 1, RunState.COMPLETED: 2, RunState.STOPPED: 3, RunState.FAILED: 4}
COLUMNS = [tables.runs.c[field.name] for field in fields(Run)]
PLACE = tables.runs.c.listed_ns, tables.runs.c.run_id
NEWEST_FIRST = tables.runs.c.listed_ns.desc(), tables.runs.c.run_id.desc()  # as indexes have them
OUTLINE = ("run_id", "workload", "system", "state", "world_size", "started_ns", "ended_ns")
BARE: Mapping[str, Any] = {"configuration": {}, "software": {}, "tags": {}, "facts": Facts()}  # shared by all outlines
PUT_AT_ONCE = 1000
SYSTEM_OF = 2000  # newest runs that say which system is meant where none is named
HELD_BY_RUN = (  # tables whose rows go with their run
    *(tables.ranks, tables.injections, tables.placements, tables.run_verdicts, tables.run_features, tables.runs),
)
LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True)
class RunFilter:
    """Conditions that the wanted runs meet; None asks for all. `id_end` is the end of their ids, `node` one of theirs.

    They began at `since_ns` or later, and before `until_ns`.
    """

    workload: str | None = None
    system: str | None = None
    state: RunState | None = None
    job_id: str | None = None
    id_end: str | None = None
    user: str | None = None
    account: str | None = None
    since_ns: int | None = None
    until_ns: int | None = None
    cohort: str | None = None
    node: str | None = None

    @property
    def place(self) -> tuple[ColumnElement[int], ColumnElement[str]]:
        """The columns of a run's place in the list: of an index of these runs."""
        return PLACE if self.node is None else run_nodes.PLACE

    @property
    def newest_first(self) -> tuple[ColumnElement[Any], ...]:
        """The order from the newest run down."""
        return tuple(column.desc() for column in self.place)


ANY_RUN = RunFilter()
EQUAL = (
    "workload",
    "system",
    "state",
    "job_id",
    "user",
    "account",
    "cohort",
)  # conditions that a column has this value


class Runs:
    """Runs, over one connection; whatever is read are those that the rule lets be seen."""

    def __init__(self, connection: Connection, rule: RowRule = ALL_ROWS, notes: Notes | None = None) -> None:
        self._connection = connection
        self._rule = rule
        self._notes = notes or Notes()
        self._verdicts = Verdicts(connection)

    def merge(self, run: Run) -> None:
        """Stores what is now known of a run; an earlier, more certain fact is never overwritten by a vaguer one."""
        rows.hold(self._connection, run.run_id)
        row = rows.fetch(self._connection, tables.runs, run_id=run.run_id)
        stored = None if row is None else _run(row)
        merged = run if stored is None else merge_runs(stored, run)
        tags = {**merged.tags, **written_twice(self._connection, run.run_id)}
        rows.upsert(self._connection, tables.runs, {**_row(merged), "tags": tags})
        before = set() if stored is None else run_nodes.keys_of(stored)
        run_nodes.change(self._connection, before, run_nodes.keys_of(merged))
        self._verdicts.want([merged])
        self._notes.run(stored, merged)

    def put_all(self, runs: Iterable[Run]) -> None:
        """Stores runs as they are, in place of what was stored of them; of two of one id the last one."""
        remaining = iter(runs)
        while some := {run.run_id: run for run in islice(remaining, PUT_AT_ONCE)}:
            before = run_nodes.stored_keys(self._connection, some)
            rows.upsert_all(self._connection, tables.runs, [_row_unshared(run) for run in some.values()])
            run_nodes.change(self._connection, before, set().union(*map(run_nodes.keys_of, some.values())))
            self._verdicts.want(some.values())

    def lose(self, run_id: str) -> None:
        """Notes that a run without an end will not report one any more."""
        where = and_(tables.runs.c.run_id == run_id, tables.runs.c.state == RunState.RUNNING)
        lost = update(tables.runs).where(where).values(state=RunState.LOST)
        if self._connection.execute(lost.execution_options(preserve_rowcount=True)).rowcount:
            self._verdicts.want([self.get(run_id)])
            self._notes.lost(run_id)

    def stored(self, run_ids: Iterable[str]) -> list[str]:
        """Those of the runs that are in the catalog."""
        wanted = list(run_ids)
        among = rows.among(self._connection, tables.runs.c.run_id, wanted)
        seen = set(self._connection.execute(self._seen(select(tables.runs.c.run_id).where(among))).scalars())
        return [run_id for run_id in wanted if run_id in seen]

    def get(self, run_id: str) -> Run:
        """One run. Raises: NotFoundError, also for one that may not be seen."""
        query = self._seen(select(tables.runs).where(tables.runs.c.run_id == run_id))
        row = self._connection.execute(query).mappings().first()
        if row is None:
            raise NotFoundError(f"run {run_id!r} is not in the catalog")
        return _run(dict(row))

    def own(self, run_id: str) -> Run:
        """One run that may be changed. Raises: NotFoundError; ForbiddenError for one that is merely shared."""
        run = self.get(run_id)
        query = select(func.count()).where(tables.runs.c.run_id == run_id, is_own(self._rule, tables.runs))
        if not self._connection.execute(query).scalar():
            raise ForbiddenError(f"run {run_id!r} is another user's, and shared to be read")
        return run

    def share(self, run_id: str, *, shared: bool) -> Run:
        """Let everybody see a run, or no longer. Raises: as `own`."""
        self.own(run_id)
        rows.change(self._connection, tables.runs, {"run_id": run_id}, shared=shared)
        return self.get(run_id)

    def remove(self, run_id: str) -> None:
        """Remove a run, its ranks, and what was injected into it; trials keep their objective. Raises: as `own`."""
        run_nodes.change(self._connection, run_nodes.keys_of(self.own(run_id)), set())
        for table in HELD_BY_RUN:
            self._connection.execute(delete(table).where(table.c.run_id == run_id))
        Events(self._connection).remove_of_run(run_id)
        of_run = update(tables.trials).where(tables.trials.c.run_id == run_id)
        self._connection.execute(of_run.values(run_id=None))

    def of_others(self, run_ids: Collection[str]) -> set[str]:
        """Return those of the runs that are stored and that the rule's holder may not change."""
        table = tables.runs
        among = rows.among(self._connection, table.c.run_id, run_ids)
        query = select(table.c.run_id).where(among, not_(func.coalesce(is_own(self._rule, table), false())))
        return set(self._connection.execute(query).scalars())

    def unowned(self, *, limit: int) -> set[tuple[str, str]]:
        """System and job of the newest runs of jobs whose user is not known."""
        table = tables.runs
        query = select(table.c.system, table.c.job_id).where(table.c.user.is_(None), table.c.job_id.is_not(None))
        newest = self._connection.execute(_listed(query).limit(limit))
        return {(str(system), str(job)) for system, job in newest}

    def settle_owner(self, system: str, job_id: str, *, user: str, account: str | None) -> None:
        """Note whose job it was on its runs whose user is not known."""
        table = tables.runs
        where = and_(table.c.system == system, table.c.job_id == job_id, table.c.user.is_(None))
        values = {"user": user, "account": func.coalesce(table.c.account, account)}
        self._connection.execute(update(table).where(where).values(**values))

    def find(self, wanted: RunFilter = ANY_RUN, *, before: tuple[int, str] | None = None, limit: int) -> list[Run]:
        """Runs, newest first; `before` is the (started_ns, run_id) of the last one seen."""
        return self.part(wanted, Part(limit, descending=True, after=before))

    def part(self, wanted: RunFilter, part: Part) -> list[Run]:
        """Return a part of the runs in the order of (started_ns, run_id); a run that has not begun counts as of 0."""
        query = behind(_filtered(wanted), part, wanted.place)
        order = wanted.newest_first if part.descending else wanted.place
        query = newest_seen(self._rule, query, order, part.limit)
        return [_run(dict(row)) for row in self._connection.execute(query).mappings()]

    def near(self, run: Run, *, limit: int) -> list[str]:
        """Return ids of the other runs of its cohort: those that began nearest to it."""
        table = tables.runs
        place, began = tuple_(table.c.listed_ns, table.c.run_id), run.started_ns or 0
        cohort = self._seen(select(table.c.run_id, table.c.listed_ns).where(table.c.cohort == cohort_digest(run)))
        here = tuple_(began, run.run_id)
        earlier = _listed(cohort.where(place < here)).limit(limit)
        later = cohort.where(place > here).order_by(table.c.listed_ns, table.c.run_id).limit(limit)
        places = [row for side in (earlier, later) for row in self._connection.execute(side).all()]
        return [run_id for run_id, _ in sorted(places, key=lambda row: (abs(row[1] - began), row[0]))[:limit]]

    def some(self, run_ids: Collection[str]) -> list[Run]:
        """Return those of the runs that are stored, oldest first."""
        query = self._seen(select(*COLUMNS).where(rows.among(self._connection, tables.runs.c.run_id, run_ids)))
        runs = [_run(dict(row)) for row in self._connection.execute(query).mappings()]
        return sorted(runs, key=lambda run: (run.started_ns or 0, run.run_id))

    def outlines(self, wanted: RunFilter, *, limit: int) -> list[Run]:
        """The newest runs, oldest first, without what takes time to decode: no configuration, nodes or other facts."""
        table = tables.runs
        columns = [table.c[name] for name in OUTLINE]
        query = newest_seen(self._rule, _filtered(wanted).with_only_columns(*columns), wanted.newest_first, limit)
        newest = self._connection.execute(query).all()
        rows_of = [dict(zip(OUTLINE, row, strict=True)) for row in newest[::-1]]
        return [Run(**BARE, **{**row, "state": RunState(row["state"])}) for row in rows_of]

    def placed(self, wanted: RunFilter, *, limit: int) -> list[tuple[str, str, list[str]]]:
        """Return id, digest of the cohort and nodes of those of the newest runs that completed, oldest first."""
        table = tables.runs
        columns = table.c.run_id, table.c.cohort, table.c.state, cast(table.c.nodes, Text)
        newest = newest_seen(self._rule, _filtered(wanted).with_only_columns(*columns), wanted.newest_first, limit)
        rows_of = self._connection.execute(newest).all()[::-1]
        return [
            (run_id, cohort, decode(nodes, type=list[str]))
            for run_id, cohort, state, nodes in rows_of
            if state == RunState.COMPLETED
        ]

    def nodes_of_newest(self, system: str, *, limit: int) -> set[str]:
        """Return the nodes that the newest runs of a system ran on."""
        of_system = select(tables.runs.c.nodes).where(tables.runs.c.system == system)
        newest = newest_seen(self._rule, of_system, NEWEST_FIRST, limit)
        return {node for nodes in self._connection.execute(newest).scalars() for node in nodes}

    def on_nodes(self, nodes: Collection[str], within: tuple[int, int], *, looked_at: int, limit: int) -> list[Run]:
        """Return the newest runs on any of these nodes in a time, newest first; of the newest ones before its end."""
        begin_ns, end_ns = within
        before = select(tables.runs).where(tables.runs.c.listed_ns <= end_ns)
        newest = newest_seen(self._rule, before, NEWEST_FIRST, looked_at).subquery().c
        is_meanwhile = or_(newest.ended_ns.is_(None), newest.ended_ns >= begin_ns)
        listed = rows.unfolded(self._connection, newest.nodes)
        is_there = exists(select(1).select_from(listed).where(listed.c.value.in_(sorted(nodes))))
        query = select(newest.run_id).where(is_meanwhile, is_there)
        first = query.order_by(newest.listed_ns.desc(), newest.run_id.desc()).limit(limit)
        return self.some(self._connection.execute(first).scalars().all())[::-1]

    def by_workload(self) -> list[tuple[str, str, int, int | None, int | None]]:
        """Return by system and workload how many runs there are, when the first began, and the last ended or began."""
        table = tables.runs
        began = func.min(table.c.started_ns)
        ended = func.max(func.coalesce(table.c.ended_ns, table.c.started_ns))
        query = self._all_seen(select(table.c.system, table.c.workload, func.count(), began, ended))
        grouped = self._connection.execute(query.group_by(table.c.system, table.c.workload))
        return [(row[0], row[1], int(row[2]), row[3], row[4]) for row in grouped]

    def cohorts(self) -> list[tuple[str, int, int]]:
        """For each cohort its workload, how many runs it has, and how many of them ended well."""
        table = tables.runs
        is_ended = and_(table.c.state == RunState.COMPLETED, table.c.ended_ns > table.c.started_ns)
        query = self._seen(select(table.c.workload, func.count(), func.count().filter(is_ended)))
        by_cohort = query.group_by(table.c.cohort, table.c.workload)
        return [(str(workload), int(runs), int(ended)) for workload, runs, ended in self._connection.execute(by_cohort)]

    def usual_system(self, wanted: RunFilter) -> str | None:
        """The system of most of the newest runs that match; None where none does."""
        table = tables.runs
        columns = _filtered(wanted).with_only_columns(table.c.system, table.c.listed_ns)
        newest = newest_seen(self._rule, columns, wanted.newest_first, SYSTEM_OF)
        rows_of = newest.subquery().c
        query = select(rows_of.system).group_by(rows_of.system)
        first = query.order_by(func.count().desc(), func.max(rows_of.listed_ns).desc()).limit(1)
        return self._connection.execute(first).scalar()

    def counts_by_job(self, job_ids: Collection[str]) -> dict[tuple[str, str], int]:
        """By system and job how many runs each of these jobs held."""
        table = tables.runs
        is_wanted = rows.among(self._connection, table.c.job_id, job_ids)
        query = self._seen(select(table.c.system, table.c.job_id, func.count()).where(is_wanted))
        counts = self._connection.execute(query.group_by(table.c.system, table.c.job_id))
        return {(str(system), str(job_id)): int(count) for system, job_id, count in counts}

    def count(self, wanted: RunFilter = ANY_RUN) -> int:
        """Return how many of the stored runs match."""
        query = self._all_seen(filtered(select(func.count()).select_from(tables.runs), wanted))
        return int(self._connection.execute(query).scalar_one())

    def every(self, count: int, wanted: RunFilter = ANY_RUN) -> list[int]:
        """Return the start, ns UTC, of the first of every `count` runs that match, in the order of time."""
        began = tables.runs.c.listed_ns
        place = func.row_number().over(order_by=began).label("place")
        placed = self._all_seen(filtered(select(began, place), wanted)).subquery()
        query = select(placed.c.listed_ns).where(placed.c.place % count == 1 % count).order_by(placed.c.listed_ns)
        return list(self._connection.execute(query).scalars())

    def workloads(self, wanted: RunFilter = ANY_RUN) -> set[str]:
        """Return the workloads of the runs that match."""
        query = self._all_seen(_filtered(wanted)).with_only_columns(tables.runs.c.workload).distinct()
        return set(self._connection.execute(query).scalars())

    def jobs(self, *, limit: int) -> list[tuple[str, str]]:
        """Return system and job of the newest runs of jobs."""
        table = tables.runs
        query = select(table.c.system, table.c.job_id, table.c.run_id).where(table.c.job_id.is_not(None))
        newest = self._connection.execute(newest_seen(self._rule, query, NEWEST_FIRST, limit))
        return [(str(row.system), str(row.job_id)) for row in newest]

    def systems_of_job(self, job_id: str) -> set[str]:
        """Return the systems of the runs of jobs of this id."""
        query = self._seen(select(tables.runs.c.system).where(tables.runs.c.job_id == job_id))
        return set(self._connection.execute(query.distinct()).scalars())

    def nodes(self) -> set[str]:
        """Return the nodes of all runs and their ranks."""
        listed = rows.unfolded(self._connection, tables.runs.c.nodes)
        of_runs = self._all_seen(select(listed.c.value).select_from(tables.runs.join(listed, true())).distinct())
        of_ranks = select(tables.ranks.c.node).where(of_seen_runs(self._rule, tables.ranks.c.run_id)).distinct()
        return {str(node) for query in (of_runs, of_ranks) for node in self._connection.execute(query).scalars()}

    def stand(self, wanted: RunFilter) -> tuple[int, int]:
        """Return how many runs match and their latest end, ns UTC or 0: both stand still while nothing comes new."""
        if wanted == ANY_RUN and self._rule.sees_all:
            query = select(select(func.count()).select_from(tables.runs).scalar_subquery(), _latest_end())
        else:
            columns = self._all_seen(_filtered(wanted)).subquery().c
            query = select(func.count(), func.coalesce(func.max(columns.ended_ns), 0)).select_from(columns.run_id.table)
        count, newest = self._connection.execute(query).one()
        return int(count), int(newest)

    def _seen(self, query: Select[Any]) -> Select[Any]:
        return query if self._rule.sees_all else query.where(is_seen(self._rule, tables.runs))

    def _all_seen(self, query: Select[Any]) -> Select[Any]:
        return query if self._rule.sees_all else query.where(are_seen(self._rule))


def _latest_end() -> ColumnElement[int]:
    """Return the latest end of all runs: one step through the index for each state."""
    table = tables.runs
    ends = [select(func.max(table.c.ended_ns)).where(table.c.state == state).scalar_subquery() for state in RunState]
    of_state = union_all(*(select(end.label("ended_ns")) for end in ends)).subquery().c
    return select(func.coalesce(func.max(of_state.ended_ns), 0)).scalar_subquery()


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
    facts["shared"] = stored.shared
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


def behind(query: Select[Any], part: Part, place: Sequence[ColumnElement[Any]] = PLACE) -> Select[Any]:
    """Return a query of the table of runs for those behind the part's place, (started_ns, run_id)."""
    if part.after is None:
        return query
    began, run_id = part.after
    return query.where(place_of(replace(part, after=(began or 0, run_id)), *place))


def filtered(query: Select[Any], wanted: RunFilter) -> Select[Any]:
    """Return a query of the table of runs for those that match."""
    for name in EQUAL:
        if (value := getattr(wanted, name)) is not None:
            query = query.where(tables.runs.c[name] == value)
    began, _ = wanted.place
    if wanted.node is not None:
        query = query.where(run_nodes.is_on(wanted.node))
    if wanted.since_ns is not None:
        query = query.where(began >= wanted.since_ns)
    if wanted.until_ns is not None:
        query = query.where(began < wanted.until_ns)
    if wanted.id_end is not None:
        begin = wanted.id_end[::-1]
        query = query.where(tables.runs.c.reversed_id.between(begin, begin + LAST_CHARACTER))
    return query


def _listed(query: Select[Any]) -> Select[Any]:
    """Return the runs newest first."""
    return query.order_by(*NEWEST_FIRST)


def _row(run: Run) -> dict[str, Any]:
    derived = {"cohort": cohort_digest(run), "reversed_id": run.run_id[::-1]}
    return {**asdict(run), "facts": run.facts.given, **derived}


def _row_unshared(run: Run) -> dict[str, Any]:
    """Return the row without what its owner decides, which stays as it is."""
    return {name: value for name, value in _row(run).items() if name != "shared"}


def _run(row: Mapping[str, Any]) -> Run:
    lists = {"nodes": tuple(row["nodes"]), "command": tuple(shown_words(row["command"]))}
    own = {column.name: row[column.name] for column in COLUMNS}
    return Run(**{**own, **lists, "state": RunState(row["state"]), "facts": Facts(**row["facts"])})
