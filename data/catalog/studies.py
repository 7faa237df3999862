"""Studies and their trials in the catalog."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, and_, func, select

from crosswind.data.catalog import rows, tables
from crosswind.data.schema.errors import ConflictError, NotFoundError
from crosswind.data.schema.trial import History, Study, Trial, TrialState


class Studies:
    """Studies and trials, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, study: Study) -> None:
        """Stores a new study. Raises: ConflictError when its name is taken."""
        if not rows.add_unless_there(self._connection, tables.studies, asdict(study)):
            raise ConflictError(f"study name {study.name!r} is taken: choose another")

    def merge(self, history: History) -> None:
        """Stores a search that another tool made; of one that is known, what its trials have come to since.

        Raises: ConflictError when another study has its name.
        """
        study = history.study
        stored = rows.fetch(self._connection, tables.studies, study_id=study.study_id)
        if stored is None:
            self.add(study)
        else:
            rows.change(self._connection, tables.studies, {"study_id": study.study_id}, space=dict(study.space))
        for trial in history.trials:
            rows.upsert(self._connection, tables.trials, _trial_row(trial) | {"study_id": study.study_id})

    def get(self, study_id: str) -> Study:
        """A study by id or by name. Raises: NotFoundError."""
        table = tables.studies
        query = select(table).where((table.c.study_id == study_id) | (table.c.name == study_id))
        row = self._connection.execute(query).mappings().first()
        if row is None:
            raise NotFoundError(f"study {study_id!r} is not in the catalog")
        return Study(**row)

    def all(self) -> list[Study]:
        """Every study, newest first."""
        query = select(tables.studies).order_by(tables.studies.c.created_ns.desc())
        return [Study(**row) for row in self._connection.execute(query).mappings()]

    def counts(self) -> tuple[int, int]:
        """Return how many trials are stored, and of how many studies."""
        ids = tables.trials.c.study_id
        trials, studies = self._connection.execute(select(func.count(), func.count(ids.distinct()))).one()
        return int(trials), int(studies)

    def add_trial(
        self, study_id: str, trial: Trial, *, owner: str, lease_expires_ns: int, job: str | None = None
    ) -> None:
        """Stores a new trial with its lease."""
        row = _trial_row(trial) | {"owner": owner, "lease_expires_ns": lease_expires_ns, "job": job}
        rows.add(self._connection, tables.trials, row | {"study_id": study_id})

    def change_trial(self, trial_id: str, state: TrialState, **values: object) -> None:
        """Moves a trial to another state and sets further columns."""
        rows.change(self._connection, tables.trials, {"trial_id": trial_id}, state=state, **values)

    def trials(self, study_id: str) -> list[Trial]:
        """The study's trials, oldest first."""
        query = select(tables.trials).where(tables.trials.c.study_id == study_id).order_by(tables.trials.c.trial_id)
        return [_trial(dict(row)) for row in self._connection.execute(query).mappings()]

    def expired(self, study_id: str, now_ns: int) -> list[Trial]:
        """Leased trials whose lease ran out."""
        table = tables.trials
        leased = and_(table.c.study_id == study_id, table.c.state == TrialState.LEASED)
        query = select(table).where(leased, table.c.lease_expires_ns < now_ns).order_by(table.c.trial_id)
        return [_trial(dict(row)) for row in self._connection.execute(query).mappings()]


def _trial_row(trial: Trial) -> dict[str, Any]:
    return asdict(trial)


def _trial(row: Mapping[str, Any]) -> Trial:
    return Trial(row["configuration"], TrialState(row["state"]), row["objective"], row["trial_id"])
