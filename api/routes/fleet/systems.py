"""Systems: what is stored of each."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from crosswind.api.dependencies import ClientOf
from crosswind.api.paging import ListQuery, Page, cursor_of, next_url, place_of
from crosswind.api.wire import Id, refuse_unknown_query
from crosswind.data.schema.answers.systems import ListedSystem, SystemReport

router = APIRouter(prefix="/v1/systems", tags=["systems"], dependencies=[Depends(refuse_unknown_query)])


class SystemPage(Page):
    """Part of the list of systems, by name."""

    systems: list[ListedSystem]


@router.get("")
def list_systems(query: Annotated[ListQuery, Query()], request: Request, client: ClientOf) -> SystemPage:
    """Return the systems that runs or jobs are stored of, by name."""
    [after] = place_of(query.cursor, str) or [""]
    systems = [one for one in client.fleet.systems() if one.system > after][: query.limit]
    cursor = cursor_of(systems[-1].system) if len(systems) == query.limit else None
    return SystemPage(systems=systems, next=cursor, next_url=next_url(request, cursor))


@router.get("/{system}")
def get_system(system: Id, client: ClientOf) -> SystemReport:
    """Return one system with its workloads and nodes."""
    return client.fleet.system(system)
