"""Measurements that nodes took before their jobs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from crosswind.api.stored import StoreOf
from crosswind.api.wire import Name, View, refuse_unknown_query
from crosswind.models.preflight.history import earlier_checks

router = APIRouter(prefix="/v1/checks", tags=["checks"], dependencies=[Depends(refuse_unknown_query)])


class ChecksQuery(BaseModel):
    """The system that is asked about."""

    system: Name


class EarlierView(View):
    """The newest values of one measure on one node, device or pair, newest first, in the measure's unit."""

    measure: str
    method: Annotated[str, Field(description="only values of one method compare")]
    hardware: Annotated[str, Field(description="only values of one model compare; empty of disk and network")]
    node: str
    device: str
    peer: Annotated[str, Field(description="the other node of a pair; empty without one")]
    at_ns: tuple[int, ...]
    values: tuple[float, ...]


class ChecksView(View):
    """The checks of a system; empty before its first."""

    system: str
    earlier: tuple[EarlierView, ...]


@router.get("")
def get_checks(asked: Annotated[ChecksQuery, Query()], store: StoreOf) -> ChecksView:
    """Return what `crosswind check` compares with: per node the newest values of each measure."""
    checks = earlier_checks(store.lake, asked.system)
    earlier = tuple(EarlierView.model_validate(check) for check in checks)
    return ChecksView(system=asked.system, earlier=earlier)
