"""Models that are fitted on a store, which its clients for several askers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosswind.data.schema.carbon import CarbonIntensity
    from crosswind.data.store.store import Store
    from crosswind.models.forecast.weather_service import WeatherService
    from crosswind.models.next_run.predictor import RunPredictor
    from crosswind.models.next_run.seen import PredictionsSeen
    from crosswind.models.tuner.service.catalog import CatalogStudyService


@dataclass
class Fitted:
    """Models of all rows of a store, each imported and fitted when it is first needed.

    They are fitted again after `fresh_seconds` if more was stored. `intensity` is read where energy is predicted.
    `notice` hears, in a sentence, of work that takes seconds.
    """

    store: Store
    intensity: Callable[[], CarbonIntensity | None] = field(default=lambda: None)
    fresh_seconds: float = 0.0
    weather_fresh_seconds: float = 0.0
    notice: Callable[[str], None] = field(default=lambda _: None)

    @cached_property
    def predictor(self) -> RunPredictor:
        """The predictor of runs to come."""
        from crosswind.models.next_run.registered import run_predictor

        return run_predictor(
            self.store, fresh_seconds=self.fresh_seconds, intensity=self.intensity(), notice=self.notice
        )

    @cached_property
    def cut(self) -> PredictionsSeen:
        """The cutting of predictions to the runs that may be seen."""
        from crosswind.models.next_run.seen import PredictionsSeen

        return PredictionsSeen(self.fresh_seconds)

    @cached_property
    def forecaster(self) -> WeatherService:
        """The forecaster of systems' weather."""
        from crosswind.models.forecast.weather_service import WeatherService

        return WeatherService(self.store, fresh_seconds=self.weather_fresh_seconds)

    def studies_of(self, store: Store) -> CatalogStudyService:
        """Return the studies that a view of the store shows; the service keeps the searches of all."""
        from crosswind.models.tuner.evidence.stored_prior_studies import StoredPriorStudies

        if store is self.store:
            return self._studies
        return self._studies.seen_by(store.catalog, StoredPriorStudies(store))

    @cached_property
    def _studies(self) -> CatalogStudyService:
        from crosswind.models.tuner.evidence.stored_prior_studies import StoredPriorStudies
        from crosswind.models.tuner.service.catalog import CatalogStudyService

        return CatalogStudyService(self.store.catalog, find_prior_studies=StoredPriorStudies(self.store))
