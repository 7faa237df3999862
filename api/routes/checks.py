"""Measurements of nodes before their jobs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from crosswind.api.dependencies import ClientOf
from crosswind.api.paging import ListQuery, Page
from crosswind.api.tables.listing import Listing
from crosswind.api.wire import Name, refuse_unknown_query
from crosswind.data.schema.answers.checks import EarlierChecks

router = APIRouter(prefix="/v1/checks", tags=["checks"], dependencies=[Depends(refuse_unknown_query)])


class ChecksQuery(ListQuery):
    """The system whose checks are returned."""

    system: Name


class ChecksPage(Page):
    """Part of the checks of a system, by node."""

    system: str
    earlier: list[EarlierChecks]


CHECKS = Listing(
    ChecksPage, "earlier", ("node", "measure"), ("node", "measure", "method", "hardware", "device", "peer")
)


@router.get("", **CHECKS.route)
def get_checks(query: Annotated[ChecksQuery, Query()], request: Request, client: ClientOf) -> Response:
    """Return what `crosswind check` compares with: per node the newest values of each measure."""
    asked = CHECKS.asked(query, request)
    return asked.answer(asked.of_all(client.checks(query.system).earlier), system=query.system)
