"""Neighbours that go with slow runs; users by pseudonym."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from crosswind.api.routes.counters import RunsQuery
from crosswind.api.stored import AnswersOf, StoreOf
from crosswind.api.wire import View, refuse_unknown_query
from crosswind.models.interference.exposure import Scope
from crosswind.models.interference.interference import interference
from crosswind.models.interference.presence import Kind

router = APIRouter(prefix="/v1/interference", tags=["explain"], dependencies=[Depends(refuse_unknown_query)])


class CandidateView(View):
    """Somebody beside runs: a user's pseudonym, a workload or a job's id; on their nodes or in their groups."""

    kind: Kind
    scope: Scope
    name: str


class DoseView(View):
    """Time relative to runs without the neighbour, of exposed runs with least, middle and most of it."""

    low_ratio: float
    middle_ratio: float
    high_ratio: float
    p: Annotated[float, Field(description="one-sided: that more of it goes with more delay")]
    is_rising: bool


class SuspectView(View):
    """Effects that go with a candidate's presence; low and high bound 90 %."""

    candidate: CandidateView
    exposed_runs: int
    mean_share: Annotated[float, Field(description="of an exposed run's time and nodes")]
    slowdown_ratio: Annotated[float, Field(description="time beside it over time without it, drift taken out")]
    slowdown_low_ratio: float
    slowdown_high_ratio: float
    rho: float
    rho_low: float
    rho_high: float
    p: Annotated[float, Field(description="by permutation within blocks of time")]
    q: Annotated[float, Field(description="Benjamini-Hochberg, over all candidates")]
    stability: float
    dose: Annotated[DoseView | None, Field(description="of those with q below 0.05 and nine exposed runs or more")]
    rides_with: Annotated[CandidateView | None, Field(description="a surer candidate that explains this one")]
    is_blamed: Annotated[bool, Field(description="slower, q below 0.05, and explained by nobody else")]


class InterferenceView(View):
    """Candidates, surest first; `warnings` say what cannot be told and what to record."""

    system: str
    workload: str | None
    runs: int
    compared_runs: int
    accompanied_runs: int
    seen: Annotated[dict[Kind, int], Field(description="who were beside any run")]
    candidates: Annotated[int, Field(description="beside enough runs to be tested")]
    inseparable: Annotated[int, Field(description="of them, those who came and went with the drift or one cohort")]
    suspects: tuple[SuspectView, ...]
    warnings: tuple[str, ...]
    from_ns: int | None
    to_ns: int | None


@router.get("")
def get_interference(asked: Annotated[RunsQuery, Query()], store: StoreOf, answers: AnswersOf) -> InterferenceView:
    """Users, workloads and jobs ranked by how surely runs beside them are slower; stores nothing."""
    return InterferenceView.model_validate(answers(store, interference, asked.workload, asked.system))
