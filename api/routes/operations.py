"""Operations: long work that goes on after a request was answered."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from crosswind.api.delivery.validators import UNLESS_CATALOG_IS_UNCHANGED
from crosswind.api.dependencies import StoreOf
from crosswind.api.wire import Id, View, refuse_unknown_query
from crosswind.data.schema.operation import OperationState

router = APIRouter(prefix="/v1/operations", tags=["operations"], dependencies=[Depends(refuse_unknown_query)])


class OperationView(View):
    """One piece of long work; when the process that does it is killed, another begins it again."""

    operation_id: str
    kind: str
    arguments: dict[str, str]
    state: OperationState
    made_at: str | None
    made_ns: int
    started_at: str | None
    started_ns: int | None
    ended_at: str | None
    ended_ns: int | None
    progress: Annotated[float, Field(description="share that is done, if the work reports it")]
    attempts: int
    result: dict[str, str | int | None]
    error: str | None


@router.get("/{operation_id}", dependencies=[UNLESS_CATALOG_IS_UNCHANGED])
def get_operation(operation_id: Id, store: StoreOf) -> OperationView:
    """Return one operation in its present state."""
    with store.catalog.read() as session:
        return OperationView.from_record(session.operations.get(operation_id))
