"""Events in the catalog, read in the order in which they were stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, delete, false, func, or_, select, true, update

from crosswind.data.catalog import tables
from crosswind.data.catalog.live.notes import TOKEN_ENDED
from crosswind.data.catalog.live.tables import events
from crosswind.data.catalog.seen import Belongs, is_seen, sees
from crosswind.data.schema.access import ALL_ROWS, RowRule
from crosswind.data.schema.answers.events import ANY_EVENT, Event, EventFilter, EventKind, EventPart

REMOVED = "removed"  # kind of an event whose run or study was deleted; it keeps its id
HIDDEN = (REMOVED, TOKEN_ENDED)
LOOKED_AT = 10_000  # events that one query looks at: whoever may see none of them costs no more
KEPT_DAYS = 7
KEPT_ROWS = 200_000
DAY_NS = 86_400_000_000_000
RUNS, STUDIES = tables.runs.c, tables.studies.c
OWNERS = (
    *(RUNS.user.label("run_user"), RUNS.account.label("run_account"), RUNS.shared.label("run_shared")),
    *(RUNS.system.label("run_system"), RUNS.job_id.label("run_job"), RUNS.workload),
    *(STUDIES.owner, STUDIES.account.label("study_account"), STUDIES.shared.label("study_shared")),
)
JOINED = events.outerjoin(tables.runs, RUNS.run_id == events.c.run_id).outerjoin(
    tables.studies, STUDIES.study_id == events.c.study_id
)


@dataclass(frozen=True)
class StoredEvent:
    """An event with those whose it is; `ended_token` names a token whose streams are to end instead."""

    event: Event
    of_run: Belongs | None
    of_study: Belongs | None
    ended_token: str | None = None

    def may_be_seen(self, rule: RowRule) -> bool:
        """Return whether the rule lets its holder see it; as `Events.after` decides in SQL."""
        if self.event.kind is EventKind.RESET or rule.sees_all:
            return True
        return any(sees(rule, whose) for whose in (self.of_run, self.of_study) if whose)


class Events:
    """Events, over one connection; whatever is read are those that the rule lets be seen."""

    def __init__(self, connection: Connection, rule: RowRule = ALL_ROWS) -> None:
        self._connection = connection
        self._rule = rule

    def newest(self) -> int:
        """Return the id of the last event that was stored; 0 before the first."""
        return self._ends()[1]

    def after(self, position: int, wanted: EventFilter = ANY_EVENT, *, limit: int) -> EventPart:
        """Return the events after a position; after one that was never reached, as in a restored catalog, a reset."""
        oldest, newest = self._ends()
        if position > newest:
            return EventPart((self._reset(newest),), newest, is_last=True)
        upto = min(newest, max(position, oldest - 1) + LOOKED_AT)
        query = _ordered().where(events.c.event_id > position, events.c.event_id <= upto, self._is_seen())
        stored = self._connection.execute(_filtered(query, wanted).limit(limit)).mappings()
        seen = tuple(_event(dict(row)) for row in stored)
        reached = seen[-1].event_id if len(seen) == limit else upto
        return EventPart(seen, reached, is_last=reached == newest)

    def stored_after(self, position: int, *, limit: int) -> list[StoredEvent]:
        """Return the events after a position whoever may see them, with those whose they are."""
        query = _ordered().where(events.c.event_id > position).limit(limit)
        return [_stored(dict(row)) for row in self._connection.execute(query).mappings()]

    def forget(self, now_ns: int, *, kept_days: float = KEPT_DAYS, kept_rows: int = KEPT_ROWS) -> None:
        """Remove events that are older than so many days, or beyond so many; the last of them becomes a reset."""
        old = select(func.max(events.c.event_id)).where(events.c.at_ns < now_ns - round(kept_days * DAY_NS))
        upto = max(self._connection.execute(old).scalar() or 0, self.newest() - kept_rows)
        last = self._connection.execute(select(func.max(events.c.event_id)).where(events.c.event_id <= upto)).scalar()
        if last is None or self._is_reset(last):
            return
        self._connection.execute(delete(events).where(events.c.event_id < last))
        self._blank(events.c.event_id == last, EventKind.RESET)

    def remove_of_run(self, run_id: str) -> None:
        """Take away what events say of a run."""
        self._blank(events.c.run_id == run_id, REMOVED)

    def remove_of_study(self, study_id: str) -> None:
        """Take away what events say of a study."""
        self._blank(events.c.study_id == study_id, REMOVED)

    def _ends(self) -> tuple[int, int]:
        """Return the oldest and the newest id; 0 and 0 without events."""
        ends = (select(func.coalesce(end(events.c.event_id), 0)).scalar_subquery() for end in (func.min, func.max))
        oldest, newest = self._connection.execute(select(*ends)).one()
        return int(oldest), int(newest)

    def _is_reset(self, event_id: int) -> bool:
        kind = self._connection.execute(select(events.c.kind).where(events.c.event_id == event_id)).scalar()
        return kind == EventKind.RESET

    def _blank(self, where: ColumnElement[bool], kind: str) -> None:
        nothing: dict[str, Any] = {"run_id": None, "study_id": None, "trial_id": None, "system": None, "details": {}}
        self._connection.execute(update(events).where(where).values(kind=kind, **nothing))

    def _is_seen(self) -> ColumnElement[bool]:
        if self._rule.sees_all:
            return events.c.kind.not_in(HIDDEN)
        of_run = and_(events.c.run_id.is_not(None), is_seen(self._rule, tables.runs))
        of_study = and_(events.c.study_id.is_not(None), is_seen(self._rule, tables.studies))
        return or_(events.c.kind == EventKind.RESET, func.coalesce(or_(of_run, of_study), false()))

    def _reset(self, position: int) -> Event:
        at = select(events.c.at_ns).where(events.c.event_id == position)
        return Event(event_id=position, kind=EventKind.RESET, at_ns=self._connection.execute(at).scalar() or 0)


def _ordered() -> Select[Any]:
    return select(events, *OWNERS).select_from(JOINED).order_by(events.c.event_id)


def _filtered(query: Select[Any], wanted: EventFilter) -> Select[Any]:
    system = case((events.c.run_id.is_not(None), RUNS.system), else_=events.c.system)
    pairs = (
        (events.c.run_id, wanted.run_id),
        (RUNS.workload, wanted.workload),
        (system, wanted.system),
        (events.c.study_id, wanted.study_id),
    )
    conditions = [column == value for column, value in pairs if value is not None]
    if wanted.kinds is not None:
        conditions.append(events.c.kind.in_(wanted.kinds))
    return query.where(or_(events.c.kind == EventKind.RESET, and_(true(), *conditions)))


def _event(row: Mapping[str, Any]) -> Event:
    return Event(
        event_id=row["event_id"],
        kind=EventKind(row["kind"]),
        at_ns=row["at_ns"],
        run_id=row["run_id"],
        workload=row["workload"],
        system=row["run_system"] or row["system"],
        study_id=row["study_id"],
        trial_id=row["trial_id"],
        details=row["details"],
    )


def _stored(row: Mapping[str, Any]) -> StoredEvent:
    if row["kind"] in HIDDEN:
        nothing = Event(event_id=row["event_id"], kind=EventKind.RESET, at_ns=row["at_ns"])
        return StoredEvent(nothing, None, None, ended_token=row["details"].get("token_id", ""))
    run = Belongs(row["run_user"], row["run_account"], bool(row["run_shared"]), (row["run_system"], row["run_job"]))
    study = Belongs(row["owner"], row["study_account"], bool(row["study_shared"]))
    return StoredEvent(_event(row), run if row["run_id"] else None, study if row["study_id"] else None)
