"""Operations: long work that goes on behind an answer."""

from typing import Annotated, Self

from fastapi import APIRouter, Depends
from pydantic import Field

from crosswind.api.stored import StoreOf
from crosswind.api.wire import Id, View, refuse_unknown_query, rfc3339
from crosswind.data.schema.operation import Operation, OperationState

router = APIRouter(prefix="/v1/operations", tags=["operations"], dependencies=[Depends(refuse_unknown_query)])


class OperationView(View):
    """One piece of long work. Whoever does it may be killed: another process then begins it again."""

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
    progress: Annotated[float, Field(description="share that is done, as far as the work tells")]
    attempts: int
    result: dict[str, str | int | None]
    error: str | None

    @classmethod
    def of(cls, operation: Operation) -> Self:
        """The operation as it looks on the wire."""
        times = {f"{name}_at": rfc3339(getattr(operation, f"{name}_ns")) for name in ("made", "started", "ended")}
        return cls.model_validate({**vars(operation), **times})


@router.get("/{operation_id}")
def get_operation(operation_id: Id, store: StoreOf) -> OperationView:
    """One operation, as it stands now."""
    with store.catalog.read() as session:
        return OperationView.of(session.operations.get(operation_id))
