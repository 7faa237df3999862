"""Studies and their trials in the catalog."""

from dataclasses import asdict

from sqlalchemy import Connection, func, select

from crosswind.data.catalog import rows, tables
from crosswind.data.schema.errors import ConflictError, NotFoundError
from crosswind.data.schema.trial import History, Study, Trial


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
            rows.upsert(self._connection, tables.trials, asdict(trial) | {"study_id": study.study_id})

    def get(self, study_id: str) -> Study:
        """A study by id or by name. Raises: NotFoundError."""
        return study_of(self._connection, study_id)

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
        lease = {"study_id": study_id, "owner": owner, "lease_expires_ns": lease_expires_ns, "job": job}
        rows.add(self._connection, tables.trials, asdict(trial) | lease)


def study_of(connection: Connection, study: str, *, is_held: bool = False) -> Study:
    """The study of this id or name; a held one is the session's alone until that ends. Raises: NotFoundError."""
    table = tables.studies
    query = select(table).where((table.c.study_id == study) | (table.c.name == study))
    # SQLite has no row locks: there a session that writes has the whole database to itself.
    row = connection.execute(query.with_for_update() if is_held else query).mappings().first()
    if row is None:
        raise NotFoundError(f"study {study!r} is not in the catalog")
    return Study(**row)
