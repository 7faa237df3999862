"""Time that a run in progress will still take."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from crosswind.api.dependencies import ClientOf
from crosswind.api.wire import Id, refuse_unknown_query
from crosswind.data.schema.answers.weather import Remaining
from crosswind.data.schema.question import STEPS_MAX

router = APIRouter(prefix="/v1/runs", tags=["runs"], dependencies=[Depends(refuse_unknown_query)])


class RemainingQuery(BaseModel):
    """The number of steps of the whole run; null: as its parameter `steps` says, or as its cohort's runs had."""

    total_steps: Annotated[int | None, Field(ge=1, le=STEPS_MAX)] = None


@router.get("/{run_id}/remaining")
def get_run_remaining(run_id: Id, query: Annotated[RemainingQuery, Query()], client: ClientOf) -> Remaining:
    """Return what is left of the run, from its steps so far and from how earlier runs went on."""
    return client.remaining(run_id, total_steps=query.total_steps)
