"""Trainers by name, for training in the background or by `crosswind models train`."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.model import ModelRecord
from crosswind.data.store.store import Store
from crosswind.models.registry.drift import LaterRuns
from crosswind.models.registry.trainer import Trained, Trainer

DAY_SECONDS = 86_400.0


def _train(store: Store, outcome: Outcome) -> Trained:
    with store.catalog.read() as session:
        if not session.runs.count():
            raise InvalidInputError("no run is stored yet: there is nothing to learn from")
    from crosswind.models.next_run.fit import train  # noqa: PLC0415 - heavy

    return train(store, outcome=outcome)


def _later(store: Store, record: ModelRecord, model: Any, outcome: Outcome) -> LaterRuns | None:
    from crosswind.models.next_run.fit import later_runs  # noqa: PLC0415 - heavy

    return later_runs(store, outcome, record, model)


def _next_run(outcome: Outcome) -> Trainer:
    return Trainer(partial(_train, outcome=outcome), partial(_later, outcome=outcome), every_seconds=DAY_SECONDS)


TRAINERS: Mapping[str, Trainer] = MappingProxyType({str(outcome): _next_run(outcome) for outcome in Outcome})
