"""Dependencies of routes: the store, its client, its studies, and the runner that trains models.

They are asynchronous although they wait for nothing, because FastAPI calls other functions in a thread each.
"""

from typing import Annotated

from fastapi import Depends, Request

from crosswind.api.access.caller import PRINCIPAL, TOKEN_ID, Caller
from crosswind.client.local import Local
from crosswind.data.schema.access import NOBODY, Principal
from crosswind.data.store.store import Store
from crosswind.models.training.operations import Runner
from crosswind.models.tuner.service.catalog import CatalogStudyService


async def principal_of(request: Request) -> Principal:
    """Return whoever asks."""
    return asking(request)


PrincipalOf = Annotated[Principal, Depends(principal_of)]


def asking(request: Request) -> Principal:
    """Return whoever asks, as the request was authenticated; nobody on routes that are open to all."""
    principal: Principal = request.scope.get("state", {}).get(PRINCIPAL, NOBODY)
    return principal


async def client_of(request: Request) -> Local:
    """Return the client of this application's store for whoever asks; all have the same fitted models."""
    client: Local = request.app.state.client
    return client.seen_by(asking(request).row_rule)


ClientOf = Annotated[Local, Depends(client_of)]


async def caller_of(request: Request) -> Caller:
    """Return who makes this request, as the authentication has written it down."""
    return Caller(request.scope["state"][PRINCIPAL], request.scope["state"][TOKEN_ID])


CallerOf = Annotated[Caller, Depends(caller_of)]


async def page_client_of(request: Request) -> Local:
    """Return the same for pages, which do not wait long for an answer."""
    client: Local = request.app.state.page_client
    return client.seen_by(asking(request).row_rule)


PageClientOf = Annotated[Local, Depends(page_client_of)]


async def store_of(request: Request) -> Store:
    """Return the store that this application serves, as far as whoever asks may see it."""
    return (await client_of(request)).store


async def whole_store_of(request: Request) -> Store:
    """Return the store with all rows, for what names none of them."""
    client: Local = request.app.state.client
    return client.store.whole


WholeStoreOf = Annotated[Store, Depends(whole_store_of)]


StoreOf = Annotated[Store, Depends(store_of)]


async def study_service_of(request: Request) -> CatalogStudyService:
    """Return the study service of the store for whoever asks; all have the same searches."""
    return (await client_of(request)).studies


StudyServiceOf = Annotated[CatalogStudyService, Depends(study_service_of)]


async def runner_of(request: Request) -> Runner:
    """Return the runner that trains this application's models."""
    runner: Runner = request.app.state.runner
    return runner


RunnerOf = Annotated[Runner, Depends(runner_of)]
