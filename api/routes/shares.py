"""Shares of a run's batch for ranks that are not equally fast."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from crosswind.api.stored import StoreOf
from crosswind.api.wire import Id, View, refuse_unknown_query
from crosswind.models.advice.shares_of_run import BATCH_MAX, shares_of_run

router = APIRouter(prefix="/v1/runs", tags=["advice"], dependencies=[Depends(refuse_unknown_query)])


class SharesQuery(BaseModel):
    """Samples a step of all ranks together: to be shared (null: as many as now), and now (null: as parameters say)."""

    batch: Annotated[int | None, Field(ge=1, le=BATCH_MAX)] = None
    now_batch: Annotated[int | None, Field(ge=1, le=BATCH_MAX)] = None


class RankShareView(View):
    """A rank's samples a step: now, with equal shares, and so that all finish together; seconds are medians."""

    rank: int
    node: str | None
    compute_seconds: float
    samples_now: float
    equal_samples: int
    samples: int
    shared_compute_seconds: float


class BatchSharesView(View):
    """Samples for each rank, and the share of the step's time that they save against equal ones, with 90 % interval."""

    run_id: str
    batch: int
    now_batch: float
    present: Annotated[str, Field(description="what told the present batch")]
    steps: Annotated[int, Field(description="that were measured")]
    ranks: tuple[RankShareView, ...]
    equal_step_seconds: float
    shared_step_seconds: float
    gain_ratio: Annotated[float, Field(description="on steps other than those that the shares were taken from")]
    gain_low_ratio: float
    gain_high_ratio: float
    warnings: tuple[str, ...]


@router.get("/{run_id}/batch-shares")
def get_batch_shares(run_id: Id, asked: Annotated[SharesQuery, Query()], store: StoreOf) -> BatchSharesView:
    """Samples for each rank so that all finish together, from the run's measured compute seconds; stores nothing."""
    shares = shares_of_run(store, run_id, asked.batch, now_batch=asked.now_batch)
    return BatchSharesView.model_validate(shares)
