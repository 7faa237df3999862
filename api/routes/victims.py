"""Waits of the ranks of a run, by who waited for whom."""

from fastapi import APIRouter, Depends

from crosswind.api.delivery.validators import UNLESS_RUN_IS_UNCHANGED
from crosswind.api.dependencies import ClientOf
from crosswind.api.wire import Id, refuse_unknown_query
from crosswind.data.schema.answers.explanations import Waits

router = APIRouter(prefix="/v1/runs", tags=["explain"], dependencies=[Depends(refuse_unknown_query)])


@router.get("/{run_id}/waits", dependencies=[UNLESS_RUN_IS_UNCHANGED])
def get_run_waits(run_id: Id, client: ClientOf) -> Waits:
    """Return which ranks waited how long for which, and how a pipeline's stages compare."""
    return client.waits(run_id)
