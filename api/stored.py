"""Access of routes to the store, to answers from it, and to the runner that trains models.

These wait for nothing and are asynchronous all the same: FastAPI calls other functions in a thread each.
"""

from typing import Annotated

from fastapi import Depends, Request

from crosswind.client.local import Local
from crosswind.data.store.store import Store
from crosswind.models.training.operations import Runner
from crosswind.models.tuner.service.catalog import CatalogStudyService


async def client_of(request: Request) -> Local:
    """The answers of this application, the same for all requests: it keeps what it learned."""
    client: Local = request.app.state.client
    return client


ClientOf = Annotated[Local, Depends(client_of)]


async def store_of(request: Request) -> Store:
    """The store that this application serves."""
    client: Local = request.app.state.client
    return client.store


StoreOf = Annotated[Store, Depends(store_of)]


async def study_service_of(request: Request) -> CatalogStudyService:
    """The studies of the store, the same service for all requests: it keeps their searches."""
    client: Local = request.app.state.client
    return client.studies


StudyServiceOf = Annotated[CatalogStudyService, Depends(study_service_of)]


async def runner_of(request: Request) -> Runner:
    """The runner that trains this application's models and knows their registry."""
    runner: Runner = request.app.state.runner
    return runner


RunnerOf = Annotated[Runner, Depends(runner_of)]
