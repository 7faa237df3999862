"""Access of routes to the store, and to the services that hand out trials and answer about runs to come.

These wait for nothing and are asynchronous all the same: FastAPI calls other functions in a thread each.
"""

from typing import Annotated

from fastapi import Depends, Request

from crosswind.api.answer_cache import AnswerCache
from crosswind.data.store.store import Store
from crosswind.models.forecast.weather_service import WeatherService
from crosswind.models.next_run.predictor import RunPredictor
from crosswind.models.training.operations import Runner
from crosswind.models.tuner.service.catalog import CatalogStudyService


async def store_of(request: Request) -> Store:
    """The store that this application serves."""
    store: Store = request.app.state.store
    return store


StoreOf = Annotated[Store, Depends(store_of)]


async def study_service_of(request: Request) -> CatalogStudyService:
    """The service over the store's catalog, the same one for all requests: it keeps the searches of studies."""
    service: CatalogStudyService = request.app.state.study_service
    return service


StudyServiceOf = Annotated[CatalogStudyService, Depends(study_service_of)]


async def run_predictor_of(request: Request) -> RunPredictor:
    """The service that answers about runs to come, the same one for all requests: it keeps what it learned."""
    service: RunPredictor = request.app.state.run_predictor
    return service


RunPredictorOf = Annotated[RunPredictor, Depends(run_predictor_of)]


async def weather_service_of(request: Request) -> WeatherService:
    """The service that answers about the weather, the same one for all requests: it keeps what it learned."""
    service: WeatherService = request.app.state.weather_service
    return service


WeatherServiceOf = Annotated[WeatherService, Depends(weather_service_of)]


async def runner_of(request: Request) -> Runner:
    """Return the runner that trains this application's models and knows their registry."""
    runner: Runner = request.app.state.runner
    return runner


RunnerOf = Annotated[Runner, Depends(runner_of)]


async def answers_of(request: Request) -> AnswerCache:
    """Return the memory of answers about the whole fleet, the same for all requests."""
    answers: AnswerCache = request.app.state.answers
    return answers


AnswersOf = Annotated[AnswerCache, Depends(answers_of)]
