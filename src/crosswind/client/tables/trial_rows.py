"""Trials as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from crosswind.data.schema.answers.fields import fill_texts, text_of
from crosswind.data.schema.trial import Configuration, TrialRecord, TrialState


@dataclass(frozen=True)
class TrialRow:
    """The fields of a `TrialRecord` and its trial side by side."""

    trial_id: str
    study_id: str
    configuration: Configuration
    state: TrialState
    objective: float | None
    owner: str | None
    lease_expires_ns: int | None
    run_id: str | None
    reason: str | None
    job: str | None
    checkpoint: str | None
    outcomes: Mapping[str, float]
    losses: int
    weights: Mapping[str, float]
    charged: bool
    lease_expires_at: str | None = field(default=None, metadata=text_of("lease_expires_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)

    @classmethod
    def of(cls, record: TrialRecord) -> TrialRow:
        """Return the row of a record."""
        return cls(**record.as_json())
