"""Saved cohorts: selections of runs that somebody gave a name."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.run import RunState

MEMBERS_MAX = 10_000  # runs by their ids


@dataclass(frozen=True)
class RunConditions:
    """Conditions that all members meet; None asks for all. Times are of the runs' start, ns UTC, `to_ns` excluded."""

    workload: str | None = None
    system: str | None = None
    state: RunState | None = None
    job_id: str | None = None
    verdict: str | None = None
    from_ns: int | None = None
    to_ns: int | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        """Return the conditions that were stored; those that this version does not know are left out."""
        given: dict[str, Any] = {name: value.get(name) for name in cls.__dataclass_fields__}
        return cls(**{**given, "state": RunState(given["state"]) if given["state"] else None})


@dataclass(frozen=True)
class SavedCohort:
    """A selection of runs: these, or all that meet the conditions, also those that come later.

    Raises: InvalidInputError unless it is given in one of the two ways.
    """

    cohort_id: str
    name: str
    created_ns: int
    run_ids: tuple[str, ...] | None = None
    conditions: RunConditions | None = None
    note: str = ""
    owner: str | None = None
    shared: bool = False

    def __post_init__(self) -> None:
        if (self.run_ids is None) == (self.conditions is None):
            raise InvalidInputError(f"cohort {self.name!r:.80}: expected either run_ids or conditions")
        if self.conditions == RunConditions():
            raise InvalidInputError(f"cohort {self.name!r:.80}, conditions: expected one at least")
        if self.run_ids is not None and not 1 <= len(self.run_ids) <= MEMBERS_MAX:
            raise InvalidInputError(f"run_ids: {len(self.run_ids)} of them, expected 1 to {MEMBERS_MAX}")

    def as_row(self) -> dict[str, Any]:
        """Return it as the catalog stores it."""
        return {**asdict(self), "run_ids": None if self.run_ids is None else list(self.run_ids)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Return the cohort of a row of the catalog."""
        run_ids = None if row["run_ids"] is None else tuple(row["run_ids"])
        conditions = None if row["conditions"] is None else RunConditions.from_json(row["conditions"])
        names = ("cohort_id", "name", "created_ns", "note", "owner", "shared")
        return cls(**{name: row[name] for name in names}, run_ids=run_ids, conditions=conditions)
