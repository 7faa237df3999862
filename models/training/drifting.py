"""Drift of a registered version on the runs since its training, as its trainer predicts these."""

from dataclasses import dataclass

from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.model import ModelRecord
from crosswind.data.store.store import Store
from crosswind.models.registry.drift import Drift, drift_of
from crosswind.models.registry.registry import Registry
from crosswind.models.registry.trainer import Trainer
from crosswind.models.training.trainers import TRAINERS

KEEP_SECONDS = 600.0  # one batch of runs hardly changes it


@dataclass(frozen=True)
class DriftNow:
    """The drift of the version that answers."""

    version: int
    drift: Drift
    keep_seconds: float = KEEP_SECONDS


def drift_now(store: Store, name: str) -> DriftNow:
    """Test the version that answers on all runs that began after its data window.

    Raises: NotFoundError where none answers, UnavailableError without its file, MalformedError when that was changed.
    """
    with store.whole.catalog.read() as session:
        record = session.models.promoted(name)
    if record is None:
        raise NotFoundError(f"no version of model {name[:60]!r} is promoted")
    return DriftNow(record.version, drift_on(store.whole, Registry(store.whole), TRAINERS.get(name), record))


def drift_on(store: Store, registry: Registry, trainer: Trainer | None, record: ModelRecord) -> Drift:
    """Test a version on the runs of a store; where nobody predicts these, on none."""
    if trainer is None or trainer.later_runs is None:
        return Drift(0)
    later = trainer.later_runs(store, record, registry.load(record.name, record.version).model)
    return Drift(0) if later is None else drift_of(record.evidence, later)
