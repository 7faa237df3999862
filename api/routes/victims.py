"""Waits of the ranks of a run, by who waited for whom."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from crosswind.api.stored import StoreOf
from crosswind.api.wire import Id, View, refuse_unknown_query
from crosswind.models.explain.victims import victims_of

router = APIRouter(prefix="/v1/runs", tags=["explain"], dependencies=[Depends(refuse_unknown_query)])


class WaitView(View):
    """For how many seconds, in how many steps, one rank waited for another."""

    culprit: int
    victim: int
    seconds: float
    steps: int


class StageView(View):
    """A pipeline's stage: mean seconds a step of its ranks, by themselves and waiting."""

    name: str
    ranks: tuple[int, ...]
    own_seconds: float
    waited_seconds: float


class WaitsView(View):
    """The graph of a run over the steps after warm-up that all of its ranks recorded, the largest edges first."""

    run_id: str
    steps: int
    lost_seconds: Annotated[float, Field(description="sum over all victims and steps")]
    edges: tuple[WaitView, ...]
    stages: Annotated[tuple[StageView, ...], Field(description="none without a pipeline")]
    balance_ratio: Annotated[float | None, Field(description="mean / largest of the stages' own seconds")]


@router.get("/{run_id}/waits")
def get_waits(run_id: Id, store: StoreOf) -> WaitsView:
    """Return who waited how long for whom, and how a pipeline's stages compare."""
    return WaitsView.model_validate(victims_of(store, run_id))
