"""Verdicts on runs and the features that they come from, and which of them are to be computed again.

A run that has ended is due. Whatever is stored of it later raises `wanted`; what was computed of that revision has the
same in `made`. Runs of its cohort that come or change later are counted in `changes`; a verdict holds for as many as
`allowed`. So nothing is forgotten because of a batch that has nothing to do with the run.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, func, select, update

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.live.notes import Notes
from crosswind.data.schema.landing import Landing
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.run_verdict import RunVerdict

NOT_DUE, DUE_VERDICT, DUE_FEATURES = 0, 1, 2
TABLE, FEATURES = tables.run_verdicts, tables.run_features
IS_MADE = TABLE.c.made == TABLE.c.wanted


@dataclass(frozen=True)
class StoredFeatures:
    """Features of a run in a model's own form, None where it has none, and the outcome of its steps.

    They were made of the stored run of this `revision`; `last_ns` is when its last step began, ns UTC, 0 without steps.
    """

    outcome: RunVerdict
    revision: int
    form: str
    content: bytes | None
    last_ns: int


class Verdicts:
    """Verdicts and features of runs, over one connection."""

    def __init__(self, connection: Connection, notes: Notes | None = None) -> None:
        self._connection = connection
        self._notes = notes or Notes()

    def want(self, runs: Iterable[Run]) -> None:
        """Note that these runs came or changed; those that have not ended wait for that."""
        ended = sorted(map(_due, (run for run in runs if run.state is not RunState.RUNNING)), key=itemgetter("run_id"))
        if ended:
            self._connection.execute(rows.upsert_with(self._connection, TABLE, tuple(ended[0]), AGAIN), ended)

    def want_again(self, run_ids: Collection[str]) -> None:
        """Note that more of these runs is stored; those that nothing is known of yet are left out."""
        if len(run_ids) == 1:
            self._connection.execute(ONE_AGAIN, {"again_id": next(iter(run_ids))})
        elif run_ids:
            self._hold(run_ids)
            among = rows.among(self._connection, TABLE.c.run_id, run_ids)
            self._connection.execute(update(TABLE).where(among).values(**AGAIN))

    def _hold(self, run_ids: Collection[str]) -> None:
        """Lock the rows in the order of their ids, so that nobody who locks some of them waits for us, and we for them.

        SQLite has one writer anyway.
        """
        if self._connection.dialect.name == "postgresql":
            among = rows.among(self._connection, TABLE.c.run_id, run_ids)
            self._connection.execute(select(TABLE.c.run_id).where(among).order_by(TABLE.c.run_id).with_for_update())

    def landed(self, landings: Iterable[Landing]) -> None:
        """Note that rows were stored: runs that they are of, or on whose nodes they were sampled meanwhile, are due."""
        of_runs: set[str] = set()
        for landing in landings:
            of_runs |= landing.run_ids
            if landing.nodes:
                of_runs.update(self._on_nodes(landing))
        self.want_again(of_runs)

    def _on_nodes(self, landing: Landing) -> Iterable[str]:
        runs, last_ns = tables.runs, TABLE.c.last_ns
        meanwhile = and_(last_ns >= landing.first_ns, TABLE.c.begin_ns <= landing.last_ns)
        query = select(TABLE.c.run_id, runs.c.nodes).join(runs, runs.c.run_id == TABLE.c.run_id).where(meanwhile)
        for which in (last_ns <= landing.last_ns + tables.LONG_NS, tables.IS_LONG):  # each by an index
            for run_id, nodes in self._connection.execute(query.where(which)):
                if not landing.nodes.isdisjoint(nodes):
                    yield run_id

    def due_features(self, limit: int) -> list[str]:
        """Return runs whose features are to be computed, the newest ids first."""
        return self._due(DUE_FEATURES, limit)

    def due_verdicts(self, limit: int) -> list[str]:
        """Return runs whose verdict is to be computed again, the newest ids first."""
        return self._due(DUE_VERDICT, limit)

    def _due(self, due: int, limit: int) -> list[str]:
        query = select(TABLE.c.run_id).where(TABLE.c.due > 0, TABLE.c.due == due).order_by(TABLE.c.run_id.desc())
        return list(self._connection.execute(query.limit(limit)).scalars())

    def due_among(self, run_ids: Collection[str]) -> set[str]:
        """Return those of the runs that are due."""
        query = select(TABLE.c.run_id).where(rows.among(self._connection, TABLE.c.run_id, run_ids), TABLE.c.due > 0)
        return set(self._connection.execute(query).scalars())

    def give_up(self, run_id: str) -> None:
        """Compute nothing of this run in the background until more of it is stored."""
        rows.change(self._connection, TABLE, {"run_id": run_id}, due=NOT_DUE)

    def revisions(self, run_ids: Collection[str]) -> dict[str, tuple[int, int]]:
        """Return by run its revision and how many changes of its cohort were counted."""
        among = rows.among(self._connection, TABLE.c.run_id, run_ids)
        query = select(TABLE.c.run_id, TABLE.c.wanted, TABLE.c.changes).where(among)
        return {run_id: (wanted, changes) for run_id, wanted, changes in self._connection.execute(query)}

    def with_features(self, run_ids: Collection[str], form: str) -> set[str]:
        """Return those of the runs whose features still hold and have this form."""
        query = select(FEATURES.c.run_id).join(TABLE, TABLE.c.run_id == FEATURES.c.run_id)
        among = rows.among(self._connection, FEATURES.c.run_id, run_ids)
        return set(self._connection.execute(query.where(among, IS_MADE, FEATURES.c.form == form)).scalars())

    def features(self, run_ids: Collection[str], form: str) -> dict[str, bytes | None]:
        """Return the features that still hold and have this form, by run."""
        is_wanted = rows.among(self._connection, FEATURES.c.run_id, run_ids) & IS_MADE & (FEATURES.c.form == form)
        query = select(FEATURES.c.run_id, FEATURES.c.features)
        stored = self._connection.execute(query.join(TABLE, TABLE.c.run_id == FEATURES.c.run_id).where(is_wanted))
        return {row.run_id: row.features for row in stored}

    def put_features(self, made: Collection[StoredFeatures], near: Mapping[str, Collection[str]]) -> None:
        """Store features of those runs that did not change meanwhile.

        `near` are, by run, those to whose verdicts its features matter.
        """
        changed: Counter[str] = Counter()
        self._hold({features.outcome.run_id for features in made}.union(*near.values()))
        for features in made:
            if self._is_taken(features):
                run_id = features.outcome.run_id
                wide = {"run_id": run_id, "form": features.form, "features": features.content, "explanation": None}
                rows.upsert(self._connection, FEATURES, wide)
                changed.update(near[run_id])
        self._count(changed)

    def _is_taken(self, features: StoredFeatures) -> bool:
        outcome = features.outcome
        still = (TABLE.c.run_id == outcome.run_id) & (TABLE.c.wanted == features.revision)
        last_ns = case((TABLE.c.last_ns < features.last_ns, features.last_ns), else_=TABLE.c.last_ns)
        values = {**asdict(outcome), "made": features.revision, "due": DUE_VERDICT, "last_ns": last_ns}
        statement = update(TABLE).where(still).values(**values).execution_options(preserve_rowcount=True)
        return self._connection.execute(statement).rowcount == 1

    def _count(self, changed: Mapping[str, int]) -> None:
        """Count changes of the cohorts of runs that have a verdict."""
        if changed:
            more = TABLE.c.changes + bindparam("more")
            is_over = and_(TABLE.c.due == NOT_DUE, more > TABLE.c.allowed)
            statement = update(TABLE).where(TABLE.c.run_id == bindparam("of_run"), TABLE.c.verdict.is_not(None))
            counted = [{"of_run": run_id, "more": count} for run_id, count in sorted(changed.items())]
            due = case((is_over, DUE_VERDICT), else_=TABLE.c.due)
            self._connection.execute(statement.values(changes=more, due=due), counted)

    def put_verdict(self, verdict: RunVerdict, explanation: str, *, revision: tuple[int, int], allowed: int) -> None:
        """Store a verdict and the whole explanation, unless the run changed since `revision`, as of `revisions`."""
        wanted, changes = revision
        still = (TABLE.c.run_id == verdict.run_id) & (TABLE.c.wanted == wanted) & IS_MADE
        left = TABLE.c.changes - changes
        judged = {name: value for name, value in asdict(verdict).items() if name not in ("run_id", *OF_STEPS)}
        due = case((left > allowed, DUE_VERDICT), else_=NOT_DUE)
        statement = update(TABLE).where(still).values(**judged, changes=left, allowed=allowed, due=due)
        earlier = rows.fetch(self._connection, TABLE, run_id=verdict.run_id)
        if self._connection.execute(statement.execution_options(preserve_rowcount=True)).rowcount and earlier:
            rows.change(self._connection, FEATURES, {"run_id": verdict.run_id}, explanation=explanation)
            self._notes.verdict((earlier["verdict"], earlier["cause"]), verdict, earlier["last_ns"])

    def explanations(self, run_ids: Collection[str], form: str, *, is_current: bool = True) -> dict[str, str]:
        """Return the explanations that hold, by run: nothing that matters changed since.

        Unless `is_current`, those too that are to be computed again.
        """
        holds = (FEATURES.c.form == form) & FEATURES.c.explanation.is_not(None)
        if is_current:
            holds = holds & IS_MADE & (TABLE.c.due == NOT_DUE)
        query = select(FEATURES.c.run_id, FEATURES.c.explanation).join(TABLE, TABLE.c.run_id == FEATURES.c.run_id)
        is_wanted = rows.among(self._connection, FEATURES.c.run_id, run_ids)
        return {row.run_id: row.explanation for row in self._connection.execute(query.where(is_wanted, holds))}

    def get(self, run_ids: Collection[str]) -> dict[str, RunVerdict]:
        """Return the verdicts as they are known, by run; those of which nothing was computed yet are left out."""
        query = select(*VERDICT).where(rows.among(self._connection, TABLE.c.run_id, run_ids), TABLE.c.made > 0)
        return {row.run_id: RunVerdict(**row._asdict()) for row in self._connection.execute(query)}

    def is_any_timed(self, run_ids: Collection[str]) -> bool | None:
        """Return whether any of these runs has times of steps; None where that is to be computed of one of them."""
        among = rows.among(self._connection, TABLE.c.run_id, run_ids)
        timed = func.count().filter(TABLE.c.step_p50_seconds.is_not(None))
        query = select(timed, func.count().filter(IS_MADE)).where(among)
        with_steps, made = self._connection.execute(query).one()
        return True if with_steps else False if made == len(run_ids) else None


OF_STEPS = ("steps", "step_p50_seconds", "step_mean_seconds", "step_cov_ratio")
VERDICT: list[ColumnElement[Any]] = [TABLE.c[name] for name in RunVerdict.__dataclass_fields__]
AGAIN: Mapping[str, Any] = {"wanted": TABLE.c.wanted + 1, "due": DUE_FEATURES}
ONE_AGAIN = update(TABLE).where(TABLE.c.run_id == bindparam("again_id")).values(**AGAIN)


def _due(run: Run) -> dict[str, object]:
    begin = run.started_ns or 0
    span = {"begin_ns": begin, "last_ns": begin if run.ended_ns is None else run.ended_ns}
    counts = {"wanted": 1, "made": 0, "due": DUE_FEATURES, "changes": 0, "allowed": 0}
    return {"run_id": run.run_id, **counts, **span}
