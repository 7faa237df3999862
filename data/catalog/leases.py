"""Leases of trials: the owner who evaluates each, and until when."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, func, select

from crosswind.data.catalog import rows, tables
from crosswind.data.catalog.studies import study_of
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState

LEASE_COLUMNS = tuple(field.name for field in fields(TrialRecord) if field.name != "trial")


class Leases:
    """Trials with their leases, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def lock(self, study: str) -> Study:
        """The study of this id or name; until this session ends, nobody else gets past this call for it.

        Raises: NotFoundError.
        """
        return study_of(self._connection, study, is_held=True)

    def records(self, study_id: str, states: Collection[TrialState] = tuple(TrialState)) -> list[TrialRecord]:
        """The study's trials, oldest first; those in these states."""
        table = tables.trials
        query = select(table).where(table.c.study_id == study_id, table.c.state.in_(states)).order_by(table.c.trial_id)
        return [_record(dict(row)) for row in self._connection.execute(query).mappings()]

    def count(self, study_id: str) -> int:
        """Return how many trials the study has."""
        query = select(func.count()).where(tables.trials.c.study_id == study_id)
        return int(self._connection.execute(query).scalar_one())

    def record(self, study_id: str, trial_id: str) -> TrialRecord:
        """One trial. Raises: NotFoundError."""
        row = rows.fetch(self._connection, tables.trials, study_id=study_id, trial_id=trial_id)
        if row is None:
            raise NotFoundError(f"trial {trial_id!r} is not in study {study_id!r}")
        return _record(row)

    def change(self, record: TrialRecord) -> None:
        """Stores what has become of a trial: state, objective, and everything about its lease."""
        trial = record.trial
        values = {name: getattr(record, name) for name in LEASE_COLUMNS if name != "study_id"}
        values |= {"state": trial.state, "objective": trial.objective, "outcomes": dict(record.outcomes)}
        rows.change(self._connection, tables.trials, {"trial_id": trial.trial_id}, **values)


def _record(row: Mapping[str, Any]) -> TrialRecord:
    trial = Trial(row["configuration"], TrialState(row["state"]), row["objective"], row["trial_id"])
    return TrialRecord(trial, **{name: row[name] for name in LEASE_COLUMNS})
