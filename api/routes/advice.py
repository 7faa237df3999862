"""Advice on what to ask the scheduler for."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from crosswind.api.dependencies import ClientOf
from crosswind.api.routes.predictions import Ranks, RunRequest
from crosswind.api.wire import refuse_unknown_query
from crosswind.data.schema.answers.advice import ScalingAdvice, WalltimeAdvice
from crosswind.data.schema.question import SCALES_MAX, Price, Scales

router = APIRouter(prefix="/v1", tags=["advice"], dependencies=[Depends(refuse_unknown_query)])


class WalltimeRequest(RunRequest):
    """A run, and how sure its limit must be."""

    confidence: Annotated[float, Field(ge=0.5, lt=1, description="that the limit is enough")] = 0.95
    startup_seconds: Annotated[float | None, Field(ge=0, description="before the run begins; null: measured")] = None


class ScalingRequest(RunRequest):
    """The same work on several numbers of nodes, and what nodes and energy cost."""

    world_size: Ranks | None = 1
    node_counts: Annotated[list[Ranks], Field(min_length=1, max_length=SCALES_MAX, description="rising")]
    ranks_per_node: Annotated[int, Field(ge=1, le=100_000)] = 1
    deadline_seconds: Annotated[float | None, Field(gt=0)] = None
    now: Annotated[int | None, Field(ge=1, description="nodes that an elastic job has")] = None
    node_watts: Annotated[float | None, Field(ge=0)] = None
    per_node_hour: Annotated[float | None, Field(ge=0)] = None
    carbon_grams_per_kilowatt_hour: Annotated[float | None, Field(ge=0)] = None


@router.post("/walltime-advice")
def advise_walltime(body: WalltimeRequest, client: ClientOf) -> WalltimeAdvice:
    """The shortest time limit that the run keeps with this confidence; stores nothing."""
    return client.advise_walltime(body.question, body.confidence, startup_seconds=body.startup_seconds)


@router.post("/scaling-advice")
def advise_scaling(body: ScalingRequest, client: ClientOf) -> ScalingAdvice:
    """Time, efficiency and price over numbers of nodes, and how many to request; stores nothing."""
    scales = Scales(body.node_counts, body.ranks_per_node, body.deadline_seconds, body.now)
    price = Price(body.node_watts, body.per_node_hour, body.carbon_grams_per_kilowatt_hour)
    return client.advise_scaling(body.question, scales, price)
