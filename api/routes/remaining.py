"""Time that a run in progress will still take."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from crosswind.api.routes.predictions import QuantileView
from crosswind.api.stored import StoreOf
from crosswind.api.wire import Id, View, refuse_unknown_query
from crosswind.models.forecast.running import STEPS_MAX, remaining

router = APIRouter(prefix="/v1/runs", tags=["runs"], dependencies=[Depends(refuse_unknown_query)])


class RemainingQuery(BaseModel):
    """The number of steps of the whole run; null: as its parameter `steps` says, or as its cohort's runs had."""

    total_steps: Annotated[int | None, Field(ge=1, le=STEPS_MAX)] = None


class RemainingView(View):
    """Quantiles of the seconds still to come, of those of all steps, and of the next step's; null after the last."""

    run_id: str
    steps_done: int
    total_steps: int
    seconds_done: float
    remaining: tuple[QuantileView, ...]
    total: tuple[QuantileView, ...]
    next_step: tuple[QuantileView, ...] | None
    changed_at: Annotated[tuple[int, ...], Field(description="steps at which the pace changed for good")]
    earlier_runs: Annotated[int, Field(description="of the workload on the system, that it is compared with")]
    cohort_runs: Annotated[int, Field(description="of them, of this configuration and scale")]


@router.get("/{run_id}/remaining")
def get_remaining(run_id: Id, asked: Annotated[RemainingQuery, Query()], store: StoreOf) -> RemainingView:
    """Return what is left of the run, from its steps so far and from how earlier runs went on."""
    return RemainingView.model_validate(remaining(store, run_id, total_steps=asked.total_steps))
