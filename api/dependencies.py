"""Dependencies of routes: the store, its client, its studies, and the runner that trains models.

They are asynchronous although they wait for nothing, because FastAPI calls other functions in a thread each.
"""

from typing import Annotated

from fastapi import Depends, Request

from crosswind.api.access.caller import PRINCIPAL, TOKEN_ID, Caller
from crosswind.client.local import Local
from crosswind.data.schema.access import Principal
from crosswind.data.store.store import Store
from crosswind.models.training.operations import Runner
from crosswind.models.tuner.service.catalog import CatalogStudyService


async def client_of(request: Request) -> Local:
    """Return the client of this application's store, the same for all requests: it keeps its fitted models."""
    client: Local = request.app.state.client
    return client


ClientOf = Annotated[Local, Depends(client_of)]


async def caller_of(request: Request) -> Caller:
    """Return who makes this request, as the authentication has written it down."""
    return Caller(request.scope["state"][PRINCIPAL], request.scope["state"][TOKEN_ID])


CallerOf = Annotated[Caller, Depends(caller_of)]


async def principal_of(caller: CallerOf) -> Principal:
    """Return the principal that makes this request."""
    return caller.principal


PrincipalOf = Annotated[Principal, Depends(principal_of)]


async def store_of(request: Request) -> Store:
    """Return the store that this application serves."""
    client: Local = request.app.state.client
    return client.store


StoreOf = Annotated[Store, Depends(store_of)]


async def study_service_of(request: Request) -> CatalogStudyService:
    """Return the study service of the store, the same for all requests: it keeps their searches."""
    client: Local = request.app.state.client
    return client.studies


StudyServiceOf = Annotated[CatalogStudyService, Depends(study_service_of)]


async def runner_of(request: Request) -> Runner:
    """Return the runner that trains this application's models."""
    runner: Runner = request.app.state.runner
    return runner


RunnerOf = Annotated[Runner, Depends(runner_of)]
