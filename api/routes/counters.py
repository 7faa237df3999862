"""Counters that go with slow runs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from crosswind.api.stored import AnswersOf, StoreOf
from crosswind.api.wire import Name, View, refuse_unknown_query
from crosswind.models.counters.counters import counters

router = APIRouter(prefix="/v1/counters", tags=["explain"], dependencies=[Depends(refuse_unknown_query)])


class RunsQuery(BaseModel):
    """Of which workload (null: of all, each run compared with its own cohort) and system (null: that of most runs)."""

    workload: Name | None = None
    system: Name | None = None


class ShownView(View):
    """A counter of some devices of a metric set, `*` for numbers; per `second` or `byte`, of a gauge empty."""

    name: str
    metric_set: str
    column: str
    devices: str
    per: str
    unit: str
    description: str


class CounterEffectView(View):
    """Effect that goes with a counter; low and high bound 90 %."""

    shown: ShownView
    runs: int
    rho: Annotated[float, Field(description="partial rank correlation with the excess, without trend and cohort")]
    rho_low: float
    rho_high: float
    deviation_ratio: Annotated[float, Field(description="times as long by standard deviation of its rank")]
    deviation_low_ratio: float
    deviation_high_ratio: float
    distance_correlation: float
    importance: Annotated[float | None, Field(description="share of the variance that trees lose without it")]
    p: Annotated[float, Field(description="by permutation within blocks of time")]
    q: Annotated[float, Field(description="Benjamini-Hochberg, over all counters that were tested")]
    stability: Annotated[float, Field(description="share of bootstrap replicates in which it is among the first ten")]
    follows_duration: Annotated[bool, Field(description="that a run is slow says all of it")]
    matters: Annotated[bool, Field(description="q below 0.05")]


class CounterRankingView(View):
    """Counters that varied, surest first; `warnings` say what cannot be told and what to record."""

    system: str
    workload: str | None
    runs: int
    compared_runs: int
    sampled: int
    constant: Annotated[int, Field(description="of the sampled, those that never varied or of which too few runs know")]
    counters: tuple[CounterEffectView, ...]
    warnings: tuple[str, ...]
    from_ns: int | None
    to_ns: int | None


@router.get("")
def get_counters(asked: Annotated[RunsQuery, Query()], store: StoreOf, answers: AnswersOf) -> CounterRankingView:
    """The counters of the nodes ranked by how surely they go with the excess of runs; stores nothing."""
    return CounterRankingView.model_validate(answers(store, counters, asked.workload, asked.system))
