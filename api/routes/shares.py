"""Shares of a run's batch for ranks that are not equally fast."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from crosswind.api.dependencies import ClientOf
from crosswind.api.wire import Id, refuse_unknown_query
from crosswind.data.schema.answers.advice import BatchShares
from crosswind.data.schema.question import BATCH_MAX

router = APIRouter(prefix="/v1/runs", tags=["advice"], dependencies=[Depends(refuse_unknown_query)])


class SharesQuery(BaseModel):
    """Samples a step of all ranks together: to be shared (null: as many as now), and now (null: as parameters say)."""

    batch: Annotated[int | None, Field(ge=1, le=BATCH_MAX)] = None
    now_batch: Annotated[int | None, Field(ge=1, le=BATCH_MAX)] = None


@router.get("/{run_id}/batch-shares")
def get_batch_shares(run_id: Id, query: Annotated[SharesQuery, Query()], client: ClientOf) -> BatchShares:
    """Samples for each rank so that all finish together, from the run's measured compute seconds; stores nothing."""
    return client.batch_shares(run_id, batch=query.batch, now_batch=query.now_batch)
