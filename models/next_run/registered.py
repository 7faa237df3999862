"""The predictor that answers by the registry's promoted models."""

from collections.abc import Callable
from functools import partial

from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.carbon import CarbonIntensity
from crosswind.data.store.store import Store
from crosswind.models.next_run.model_source import Promoted
from crosswind.models.next_run.predictor import RunPredictor
from crosswind.models.registry.registry import Registry


def run_predictor(
    store: Store,
    *,
    fresh_seconds: float = 0.0,
    intensity: CarbonIntensity | None = None,
    notice: Callable[[str], None] = lambda _: None,
) -> RunPredictor:
    """A predictor that answers by the promoted models where there are any."""
    registered = partial(promoted, Registry(store))
    return RunPredictor(store, fresh_seconds=fresh_seconds, registered=registered, intensity=intensity, notice=notice)


def promoted(registry: Registry, outcome: Outcome) -> Promoted | None:
    """The promoted model of an outcome; loading it raises MalformedError or UnavailableError."""
    record = registry.promoted(str(outcome))
    if record is None:
        return None
    return Promoted(f"{record.name}/{record.version}", lambda: registry.load(record.name, record.version).model)
