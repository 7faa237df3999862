"""Trainers, which fit models of the registry."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from crosswind.data.schema.model import Evidence, ModelRecord
from crosswind.data.store.store import Store
from crosswind.models.registry.drift import LaterRuns


@dataclass(frozen=True)
class Trained:
    """A fitted model and its evidence."""

    model: Any
    evidence: Evidence


@dataclass(frozen=True)
class Trainer:
    """Makes one model.

    `train` raises InvalidInputError when there is too little to learn from. `later_runs` predicts the runs after a
    version's data window with its model, for the drift tests, and is None where there are none. The model is trained
    again every `every_seconds`, if that is given, and whenever it drifted. `progress` is the share of a
    training in progress that is done, where that is reported.
    """

    train: Callable[[Store], Trained]
    later_runs: Callable[[Store, ModelRecord, Any], LaterRuns | None] | None = None
    every_seconds: float | None = None
    progress: Callable[[], float] | None = None
