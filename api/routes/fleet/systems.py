"""Systems: what is stored of each."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from crosswind.api.dependencies import ClientOf
from crosswind.api.paging import ListQuery, Page
from crosswind.api.tables.listing import Listing
from crosswind.api.wire import Id, refuse_unknown_query
from crosswind.data.schema.answers.systems import ListedSystem, SystemReport

router = APIRouter(prefix="/v1/systems", tags=["systems"], dependencies=[Depends(refuse_unknown_query)])


class SystemPage(Page):
    """Part of the list of systems, by name."""

    systems: list[ListedSystem]


SYSTEMS = Listing(SystemPage, "systems", ("system",), ("system",))


@router.get("", **SYSTEMS.route)
def list_systems(query: Annotated[ListQuery, Query()], request: Request, client: ClientOf) -> Response:
    """Return the systems that runs or jobs are stored of, by name."""
    asked = SYSTEMS.asked(query, request)
    return asked.answer(asked.of_all(client.fleet.systems()))


@router.get("/{system}")
def get_system(system: Id, client: ClientOf) -> SystemReport:
    """Return one system with its workloads and nodes."""
    return client.fleet.system(system)
