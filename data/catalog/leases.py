"""Who evaluates which trial, and until when."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from crosswind.data.catalog import rows, tables
from crosswind.data.errors import NotFoundError
from crosswind.data.trial import Study, Trial, TrialState


@dataclass(frozen=True)
class TrialRecord:
    """A trial with its lease: the owner may evaluate it until `lease_expires_ns` on the server's clock.

    Once the lease has ended, `owner` is who held it last and `lease_expires_ns` is None.
    """

    trial: Trial
    study_id: str
    owner: str | None = None
    lease_expires_ns: int | None = None
    run_id: str | None = None
    reason: str | None = None


class Leases:
    """Trials with their leases, over one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def lock(self, study: str) -> Study:
        """The study of this id or name; until this session ends, nobody else gets past this call for it.

        Raises: NotFoundError.
        """
        table = tables.studies
        # SQLite has no row locks: there a session that writes has the whole database to itself.
        query = select(table).where((table.c.study_id == study) | (table.c.name == study)).with_for_update()
        row = self._connection.execute(query).mappings().first()
        if row is None:
            raise NotFoundError(f"study {study!r} is not in the catalog")
        return Study(**row)

    def records(self, study_id: str) -> list[TrialRecord]:
        """The study's trials, oldest first."""
        query = select(tables.trials).where(tables.trials.c.study_id == study_id).order_by(tables.trials.c.trial_id)
        return [_record(dict(row)) for row in self._connection.execute(query).mappings()]

    def record(self, study_id: str, trial_id: str) -> TrialRecord:
        """One trial. Raises: NotFoundError."""
        row = rows.fetch(self._connection, tables.trials, study_id=study_id, trial_id=trial_id)
        if row is None:
            raise NotFoundError(f"trial {trial_id!r} is not in study {study_id!r}")
        return _record(row)


def _record(row: Mapping[str, Any]) -> TrialRecord:
    trial = Trial(row["configuration"], TrialState(row["state"]), row["objective"], row["trial_id"])
    lease = {name: row[name] for name in ("study_id", "owner", "lease_expires_ns", "run_id", "reason")}
    return TrialRecord(trial, **lease)
