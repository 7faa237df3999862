"""Access of routes to the store, and to the desks that hand out trials and answer about runs to come.

These wait for nothing and are asynchronous all the same: FastAPI calls other functions in a thread each.
"""

from typing import Annotated

from fastapi import Depends, Request

from crosswind.api.remembered import RememberedAnswers
from crosswind.data.store.store import Store
from crosswind.models.forecast.weather_desk import WeatherDesk
from crosswind.models.next_run.desk import NextRunDesk
from crosswind.models.training.operations import Runner
from crosswind.models.tuner.desk import StudyDesk


async def store_of(request: Request) -> Store:
    """The store that this application serves."""
    store: Store = request.app.state.store
    return store


StoreOf = Annotated[Store, Depends(store_of)]


async def desk_of(request: Request) -> StudyDesk:
    """The desk over the store's catalog, the same one for all requests: it keeps the searches of studies."""
    desk: StudyDesk = request.app.state.study_desk
    return desk


DeskOf = Annotated[StudyDesk, Depends(desk_of)]


async def next_run_desk_of(request: Request) -> NextRunDesk:
    """The desk that answers about runs to come, the same one for all requests: it keeps what it learned."""
    desk: NextRunDesk = request.app.state.next_run_desk
    return desk


NextRunDeskOf = Annotated[NextRunDesk, Depends(next_run_desk_of)]


async def weather_desk_of(request: Request) -> WeatherDesk:
    """The desk that answers about the weather, the same one for all requests: it keeps what it learned."""
    desk: WeatherDesk = request.app.state.weather_desk
    return desk


WeatherDeskOf = Annotated[WeatherDesk, Depends(weather_desk_of)]


async def runner_of(request: Request) -> Runner:
    """Return the runner that trains this application's models and knows their registry."""
    runner: Runner = request.app.state.runner
    return runner


RunnerOf = Annotated[Runner, Depends(runner_of)]


async def answers_of(request: Request) -> RememberedAnswers:
    """Return the memory of answers about the whole fleet, the same for all requests."""
    answers: RememberedAnswers = request.app.state.answers
    return answers


AnswersOf = Annotated[RememberedAnswers, Depends(answers_of)]
