"""Studies, and how many trials there are, in the catalog."""

import re
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Select, and_, delete, func, or_, select
from sqlalchemy.exc import IntegrityError

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.keyset import part_of
from crosswind.data.catalog.live.events import Events
from crosswind.data.catalog.live.notes import Notes, is_news
from crosswind.data.catalog.seen import is_own, is_seen
from crosswind.data.schema.access import ALL_ROWS, RowRule
from crosswind.data.schema.answers.studies import StudySources
from crosswind.data.schema.errors import ConflictError, ForbiddenError, NotFoundError
from crosswind.data.schema.login import login_name
from crosswind.data.schema.part import Part
from crosswind.data.schema.trial import ENDED, History, Study, TrialRecord

NO_TEXT = re.compile(r"[\x00\ud800-\udfff]")  # in no database: drivers refuse it


@dataclass(frozen=True)
class Ownership:
    """Whose a study is, and whether everybody may see it; None where it was made before that was noted."""

    owner: str | None
    account: str | None
    shared: bool


class Studies:
    """Studies, over one connection; whatever is read are those that the rule lets be seen."""

    def __init__(self, connection: Connection, rule: RowRule = ALL_ROWS, notes: Notes | None = None) -> None:
        self._connection = connection
        self._rule = rule
        self._notes = notes or Notes()

    def add(self, study: Study) -> None:
        """Store a study, as the rule's user's or else this process's. Raises: ConflictError when its name is taken."""
        owned = {"owner": self._rule.user or login_name(), "account": self._rule.account}
        if not rows.add_unless_there(self._connection, tables.studies, {**study.as_json(), **owned}):
            raise ConflictError(f"study name {study.name!r} is taken: choose another")
        if is_news(study.created_ns):
            self._notes.study(study)

    def change(self, earlier: Study, study: Study) -> None:
        """Store what has become of a study. Raises: ConflictError when another one has its name."""
        try:
            rows.change(self._connection, tables.studies, {"study_id": study.study_id}, **study.as_json())
        except IntegrityError as error:  # also of one who took the name a moment ago
            raise ConflictError(f"study name {study.name!r} is taken: choose another") from error
        if study.state is not earlier.state:
            self._notes.study_state(study)

    def remove(self, study_id: str) -> None:
        """Remove a study that has no trials any more."""
        self._connection.execute(delete(tables.studies).where(tables.studies.c.study_id == study_id))
        Events(self._connection).remove_of_study(study_id)

    def merge(self, history: History) -> None:
        """Store a search that another tool made, or what has become of its trials since it was stored.

        Raises: ConflictError when another study has its name.
        """
        study = history.study
        stored = rows.fetch(self._connection, tables.studies, study_id=study.study_id)
        if stored is None:
            self.add(study)
        else:
            rows.change(self._connection, tables.studies, {"study_id": study.study_id}, space=dict(study.space))
        for trial in history.trials:
            row = TrialRecord(trial, study.study_id, charged=trial.state not in ENDED).as_json()
            columns = ("trial_id", "study_id", "configuration", "state", "objective", "charged")
            rows.upsert(self._connection, tables.trials, {name: row[name] for name in columns})

    def get(self, study: str) -> Study:
        """Return the study of this id or name. Raises: NotFoundError."""
        return self._study(study, self._named(study))

    def lock(self, study: str) -> Study:
        """Return the study; until this session ends, nobody else gets past this call for it. Raises: NotFoundError."""
        # SQLite has no row locks: there a session that writes has the whole database to itself.
        return self._study(study, self._named(study).with_for_update())

    def lock_own(self, study: str) -> Study:
        """As `lock`, for what its owner alone may do. Raises: NotFoundError; ForbiddenError where it is shared."""
        locked = self.lock(study)
        table = tables.studies
        query = select(func.count()).where(table.c.study_id == locked.study_id, is_own(self._rule, table))
        if not self._connection.execute(query).scalar():
            raise ForbiddenError(f"study {study!r} is another user's, and shared to take part in")
        return locked

    def ownership(self, study_id: str) -> Ownership:
        """Return whose a study is. Raises: NotFoundError."""
        table = tables.studies
        query = select(table.c.owner, table.c.account, table.c.shared).where(table.c.study_id == study_id)
        row = self._connection.execute(query.where(is_seen(self._rule, table))).first()
        if row is None:
            raise NotFoundError(f"study {study_id!r} is not in the catalog")
        return Ownership(*row)

    def share(self, study: str, *, shared: bool) -> Study:
        """Let everybody see a study and take part in it, or no longer. Raises: as `lock_own`."""
        locked = self.lock_own(study)
        rows.change(self._connection, tables.studies, {"study_id": locked.study_id}, shared=shared)
        return locked

    def sources(self, study_id: str) -> StudySources | None:
        """Return the sources that were kept of the study; None where none were."""
        kept = self._connection.execute(
            select(tables.studies.c.sources).where(tables.studies.c.study_id == study_id)
        ).scalar()
        return self._cut(StudySources.from_json(kept)) if kept else None

    def _cut(self, sources: StudySources) -> StudySources:
        """Return the sources without other studies that may not be seen."""
        if self._rule.sees_all:
            return sources
        table = tables.studies
        names = {source.name for source in sources.used} | {source.name for source in sources.left_out}
        is_named = rows.among(self._connection, table.c.name, names)
        query = select(table.c.name).where(is_named, ~is_seen(self._rule, table))
        hidden = set(self._connection.execute(query).scalars())
        used = tuple(source for source in sources.used if source.name not in hidden)
        left_out = tuple(source for source in sources.left_out if source.name not in hidden)
        return replace(sources, used=used, left_out=left_out, others_left_out=sources.others_left_out + len(hidden))

    def keep_sources(self, study_id: str, sources: StudySources) -> None:
        """Keep the sources that the study's search uses now."""
        rows.change(self._connection, tables.studies, {"study_id": study_id}, sources=sources.as_json())

    def all(self) -> list[Study]:
        """Return every study, newest first."""
        query = select(tables.studies).where(is_seen(self._rule, tables.studies))
        query = query.order_by(tables.studies.c.created_ns.desc())
        return [Study.from_json(dict(row)) for row in self._connection.execute(query).mappings()]

    def part(self, part: Part) -> list[Study]:
        """Return a part of the studies, in the order of `created_ns` or `name`."""
        table = tables.studies
        query = select(table).where(is_seen(self._rule, table))
        chosen = part_of(query, part, table.c[part.by], table.c.study_id)
        return [Study.from_json(dict(row)) for row in self._connection.execute(chosen).mappings()]

    def counts(self) -> tuple[int, int]:
        """Return how many trials are stored, and of how many studies."""
        ids = tables.trials.c.study_id
        seen = select(tables.studies.c.study_id).where(is_seen(self._rule, tables.studies))
        query = select(func.count(), func.count(ids.distinct())).where(ids.in_(seen))
        trials, studies = self._connection.execute(query).one()
        return int(trials), int(studies)

    def _study(self, study: str, query: Select[Any]) -> Study:
        row = None if NO_TEXT.search(study) else self._connection.execute(query).mappings().first()
        if row is None:
            raise NotFoundError(f"study {study!r} is not in the catalog")
        return Study.from_json(dict(row))

    def _named(self, study: str) -> Select[Any]:
        table = tables.studies
        is_it = and_(or_(table.c.study_id == study, table.c.name == study), is_seen(self._rule, table))
        # Ids first: another may be named so.
        return select(table).where(is_it).order_by((table.c.study_id == study).desc())
