"""Studies, and how many trials there are, in the catalog."""

import re
from typing import Any

from sqlalchemy import Connection, Select, delete, func, or_, select
from sqlalchemy.exc import IntegrityError

from crosswind.data.catalog import rows, tables
from crosswind.data.schema.answers.studies import StudySources
from crosswind.data.schema.errors import ConflictError, NotFoundError
from crosswind.data.schema.trial import ENDED, History, Study, TrialRecord

NO_TEXT = re.compile(r"[\x00\ud800-\udfff]")  # in no database: drivers refuse it


class Studies:
    """Studies, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, study: Study) -> None:
        """Store a new study. Raises: ConflictError when its name is taken."""
        if not rows.add_unless_there(self._connection, tables.studies, study.as_json()):
            raise ConflictError(f"study name {study.name!r} is taken: choose another")

    def change(self, study: Study) -> None:
        """Store what has become of a study. Raises: ConflictError when another one has its name."""
        try:
            rows.change(self._connection, tables.studies, {"study_id": study.study_id}, **study.as_json())
        except IntegrityError as error:  # also of one who took the name a moment ago
            raise ConflictError(f"study name {study.name!r} is taken: choose another") from error

    def remove(self, study_id: str) -> None:
        """Remove a study that has no trials any more."""
        self._connection.execute(delete(tables.studies).where(tables.studies.c.study_id == study_id))

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
        return self._study(study, _named(study))

    def lock(self, study: str) -> Study:
        """Return the study; until this session ends, nobody else gets past this call for it. Raises: NotFoundError."""
        # SQLite has no row locks: there a session that writes has the whole database to itself.
        return self._study(study, _named(study).with_for_update())

    def sources(self, study_id: str) -> StudySources | None:
        """Return the sources that were kept of the study; None where none were."""
        kept = self._connection.execute(
            select(tables.studies.c.sources).where(tables.studies.c.study_id == study_id)
        ).scalar()
        return StudySources.from_json(kept) if kept else None

    def keep_sources(self, study_id: str, sources: StudySources) -> None:
        """Keep the sources that the study's search uses now."""
        rows.change(self._connection, tables.studies, {"study_id": study_id}, sources=sources.as_json())

    def all(self) -> list[Study]:
        """Return every study, newest first."""
        query = select(tables.studies).order_by(tables.studies.c.created_ns.desc())
        return [Study.from_json(dict(row)) for row in self._connection.execute(query).mappings()]

    def counts(self) -> tuple[int, int]:
        """Return how many trials are stored, and of how many studies."""
        ids = tables.trials.c.study_id
        trials, studies = self._connection.execute(select(func.count(), func.count(ids.distinct()))).one()
        return int(trials), int(studies)

    def _study(self, study: str, query: Select[Any]) -> Study:
        row = None if NO_TEXT.search(study) else self._connection.execute(query).mappings().first()
        if row is None:
            raise NotFoundError(f"study {study!r} is not in the catalog")
        return Study.from_json(dict(row))


def _named(study: str) -> Select[Any]:
    table = tables.studies
    is_it = or_(table.c.study_id == study, table.c.name == study)
    return select(table).where(is_it).order_by((table.c.study_id == study).desc())  # ids first: another may be named so
