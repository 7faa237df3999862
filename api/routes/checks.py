"""Measurements that nodes took before their jobs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel

from crosswind.api.stored import ClientOf
from crosswind.api.wire import Name, refuse_unknown_query
from crosswind.data.schema.answers.checks import SystemChecks

router = APIRouter(prefix="/v1/checks", tags=["checks"], dependencies=[Depends(refuse_unknown_query)])


class ChecksQuery(BaseModel):
    """The system that is asked about."""

    system: Name


@router.get("")
def get_checks(asked: Annotated[ChecksQuery, Query()], client: ClientOf) -> SystemChecks:
    """Return what `crosswind check` compares with: per node the newest values of each measure."""
    return client.checks(asked.system)
