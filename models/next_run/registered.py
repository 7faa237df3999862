"""The predictor that answers by the registry's promoted models."""

from functools import partial

from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.carbon import CarbonIntensity
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.store.store import Store
from crosswind.models.next_run.model import NextRunModel
from crosswind.models.next_run.predictor import RunPredictor
from crosswind.models.registry.registry import Registry


def run_predictor(
    store: Store, *, fresh_seconds: float = 0.0, intensity: CarbonIntensity | None = None
) -> RunPredictor:
    """A predictor that answers by the promoted models where there are any."""
    registered = partial(promoted, Registry(store))
    return RunPredictor(store, fresh_seconds=fresh_seconds, registered=registered, intensity=intensity)


def promoted(registry: Registry, outcome: Outcome) -> tuple[NextRunModel, str] | None:
    """The promoted model of an outcome and its name, `NAME/VERSION`. Raises: MalformedError, UnavailableError."""
    try:
        loaded = registry.load(str(outcome))
    except NotFoundError:
        return None
    model: NextRunModel = loaded.model
    return model, f"{loaded.record.name}/{loaded.record.version}"
