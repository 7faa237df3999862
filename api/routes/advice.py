"""Advice on what to ask the scheduler for."""

from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from crosswind.api.routes.predictions import PredictionView, Ranks, RunAsk
from crosswind.api.stored import RunPredictorOf
from crosswind.api.wire import View, refuse_unknown_query
from crosswind.data.schema.carbon import Origin
from crosswind.models.advice.advise import SCALES_MAX, Scales, scaling_advice, walltime_advice
from crosswind.models.advice.scaling import Price

router = APIRouter(prefix="/v1", tags=["advice"], dependencies=[Depends(refuse_unknown_query)])


class WalltimeAsk(RunAsk):
    """A run, and how sure its limit must be."""

    confidence: Annotated[float, Field(ge=0.5, lt=1, description="that the limit is enough")] = 0.95
    startup_seconds: Annotated[float | None, Field(ge=0, description="before the run begins; null: measured")] = None


class WalltimeView(View):
    """A limit in whole minutes, and the directive that asks for it."""

    seconds: int
    confidence: float
    quantile_seconds: Annotated[float, Field(description="what the run takes at most with this confidence")]
    directive: str


class WalltimeAdviceView(View):
    """The shortest limit that is enough, and the run time that it rests on."""

    limit: WalltimeView
    startup_seconds: float
    answer: PredictionView


class ScalingAsk(RunAsk):
    """The same work on several numbers of nodes, and what nodes and energy cost."""

    world_size: Ranks = 1
    node_counts: Annotated[list[Ranks], Field(min_length=1, max_length=SCALES_MAX, description="rising")]
    ranks_per_node: Annotated[int, Field(ge=1, le=100_000)] = 1
    deadline_seconds: Annotated[float | None, Field(gt=0)] = None
    now: Annotated[int | None, Field(ge=1, description="nodes that an elastic job has")] = None
    node_watts: Annotated[float | None, Field(ge=0)] = None
    per_node_hour: Annotated[float | None, Field(ge=0)] = None
    carbon_grams_per_kilowatt_hour: Annotated[float | None, Field(ge=0)] = None


class ScalePointView(View):
    """One number of nodes; speedup and efficiency compare with the fewest, null is what nobody priced."""

    node_count: int
    seconds: float
    low_seconds: float
    high_seconds: float
    speedup: float
    efficiency: float
    node_hours: float
    joules: float | None
    cost: float | None
    carbon_grams: float | None
    energy_origin: Annotated[Origin | None, Field(description="null where the watts of a node were asked with")]


class ScalingCurveView(View):
    """Points by rising number of nodes; `knee` has the best ratio of efficiency to time."""

    points: tuple[ScalePointView, ...]
    knee: int
    cheapest: int
    fastest: int


class ScalingAdviceView(View):
    """The curve, the answers behind its points, and how many nodes to ask for: null where none keeps the deadline."""

    curve: ScalingCurveView
    answers: tuple[PredictionView, ...]
    ranks_per_node: int
    advised: int | None
    change: Annotated[int | None, Field(description="nodes to expand by, below zero to shrink by")]


@router.post("/walltime-advice")
def advise_walltime(asked: WalltimeAsk, predictor: RunPredictorOf) -> WalltimeAdviceView:
    """The shortest time limit that the run keeps with this confidence; stores nothing."""
    advice = walltime_advice(predictor, asked.question, asked.confidence, startup_seconds=asked.startup_seconds)
    return WalltimeAdviceView.model_validate(advice)


@router.post("/scaling-advice")
def advise_scaling(asked: ScalingAsk, predictor: RunPredictorOf) -> ScalingAdviceView:
    """Time, efficiency and price over numbers of nodes, and how many to ask for; stores nothing."""
    scales = Scales(asked.node_counts, asked.ranks_per_node, asked.deadline_seconds, asked.now)
    price = Price(asked.node_watts, asked.per_node_hour, asked.carbon_grams_per_kilowatt_hour)
    return ScalingAdviceView.model_validate(scaling_advice(predictor, asked.question, scales, price))
