"""Trainers by name, for training in the background or by `crosswind models train`."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.model import ModelRecord
from crosswind.data.store.store import Store
from crosswind.models.next_run.fit import later_runs, train
from crosswind.models.registry.drift import LaterRuns
from crosswind.models.registry.trainer import Trainer

DAY_SECONDS = 86_400.0


def _next_run(outcome: Outcome) -> Trainer:
    def later(store: Store, record: ModelRecord, model: Any) -> LaterRuns | None:
        return later_runs(store, outcome, record, model)

    return Trainer(partial(train, outcome=outcome), later, every_seconds=DAY_SECONDS)


TRAINERS: Mapping[str, Trainer] = MappingProxyType({str(outcome): _next_run(outcome) for outcome in Outcome})
