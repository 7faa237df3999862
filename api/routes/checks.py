"""Measurements of nodes before their jobs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel

from crosswind.api.dependencies import ClientOf
from crosswind.api.wire import Name, refuse_unknown_query
from crosswind.data.schema.answers.checks import SystemChecks

router = APIRouter(prefix="/v1/checks", tags=["checks"], dependencies=[Depends(refuse_unknown_query)])


class ChecksQuery(BaseModel):
    """The system whose checks are returned."""

    system: Name


@router.get("")
def get_checks(query: Annotated[ChecksQuery, Query()], client: ClientOf) -> SystemChecks:
    """Return what `crosswind check` compares with: per node the newest values of each measure."""
    return client.checks(query.system)
