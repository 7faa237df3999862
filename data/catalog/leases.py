"""Trials with their leases: the owner who evaluates each, and until when."""

from collections.abc import Collection

from sqlalchemy import Connection, case, delete, func, select

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.keyset import part_of
from crosswind.data.catalog.live.notes import Notes
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.part import Part
from crosswind.data.schema.trial import TrialRecord, TrialState


class Leases:
    """Trials with their leases, over one connection."""

    def __init__(self, connection: Connection, notes: Notes | None = None) -> None:
        self._connection = connection
        self._notes = notes or Notes()

    def add(self, record: TrialRecord) -> None:
        """Store a new trial."""
        rows.add(self._connection, tables.trials, record.as_json())
        self._notes.trial(None, record)

    def change(self, earlier: TrialRecord, record: TrialRecord) -> None:
        """Store what has become of a trial."""
        rows.change(self._connection, tables.trials, {"trial_id": record.trial_id}, **record.as_json())
        self._notes.trial(earlier.trial.state, record)

    def records(self, study_id: str, states: Collection[TrialState] = tuple(TrialState)) -> list[TrialRecord]:
        """Return the study's trials, oldest first; those in these states."""
        table = tables.trials
        query = select(table).where(table.c.study_id == study_id, table.c.state.in_(states)).order_by(table.c.trial_id)
        return [TrialRecord.from_json(dict(row)) for row in self._connection.execute(query).mappings()]

    def newest(self, study_id: str, most: int) -> list[TrialRecord]:
        """Return the newest of the study's trials, oldest first, so many at most."""
        table = tables.trials
        query = select(table).where(table.c.study_id == study_id).order_by(table.c.trial_id.desc()).limit(most)
        return [TrialRecord.from_json(dict(row)) for row in self._connection.execute(query).mappings()][::-1]

    def states(self, study_id: str) -> dict[TrialState, int]:
        """Return the number of the study's trials in each state, also 0."""
        table = tables.trials
        query = select(table.c.state, func.count()).where(table.c.study_id == study_id).group_by(table.c.state)
        counts: dict[str, int] = dict(map(tuple, self._connection.execute(query)))
        return {state: counts.get(state, 0) for state in TrialState}

    def part(self, study_id: str, part: Part) -> list[TrialRecord]:
        """Return a part of the study's trials, in the order of any column that holds no object."""
        table = tables.trials
        query = select(table).where(table.c.study_id == study_id)
        chosen = part_of(query, part, table.c[part.by], table.c.trial_id)
        return [TrialRecord.from_json(dict(row)) for row in self._connection.execute(chosen).mappings()]

    def count(self, study_id: str) -> tuple[int, int]:
        """Return how many trials the study has, and how many of them count for its budget."""
        table = tables.trials
        charged = func.count(case((table.c.charged, 1)))
        row = self._connection.execute(select(func.count(), charged).where(table.c.study_id == study_id)).one()
        return int(row[0]), int(row[1])

    def remove(self, study_id: str) -> None:
        """Remove the study's trials."""
        self._connection.execute(delete(tables.trials).where(tables.trials.c.study_id == study_id))

    def newest_run(self, study_id: str) -> str | None:
        """Return the run of the newest trial that has one; None without any."""
        table = tables.trials
        query = select(table.c.run_id).where(table.c.study_id == study_id, table.c.run_id.is_not(None))
        return self._connection.execute(query.order_by(table.c.trial_id.desc()).limit(1)).scalar()

    def record(self, study_id: str, trial_id: str) -> TrialRecord:
        """Return one trial. Raises: NotFoundError."""
        row = rows.fetch(self._connection, tables.trials, study_id=study_id, trial_id=trial_id)
        if row is None:
            raise NotFoundError(f"trial {trial_id!r} is not in study {study_id!r}")
        return TrialRecord.from_json(row)
