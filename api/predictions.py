"""How long the next run will take."""

from typing import Annotated, Self

from fastapi import APIRouter, Depends
from pydantic import Field

from crosswind.api.stored import StoreOf
from crosswind.api.wire import Ask, Name, Values, View, refuse_unknown_query
from crosswind.models.outlook import Outlook, Question, next_run

router = APIRouter(prefix="/v1/predictions", tags=["predictions"], dependencies=[Depends(refuse_unknown_query)])


class PredictionAsk(Ask):
    """The run that is asked about."""

    workload: Name
    system: Name
    configuration: Values = Field(default_factory=dict)
    world_size: Annotated[int, Field(ge=1, le=10_000_000, description="number of ranks")]


class QuantileView(View):
    """With probability `level` the step takes no longer than `seconds`."""

    level: float
    seconds: float


class PredictionView(View):
    """The distribution of the next run's outcome, who made it, and what it is worth.

    `outcome` is step_p50_seconds where earlier runs recorded steps, run_seconds where they did not, and job_seconds
    where only the scheduler knows of them: `world_size` is then the number of nodes.
    """

    workload: str
    system: str
    outcome: str
    unit: str
    quantiles: list[QuantileView]
    method: Annotated[str, Field(description="what did best, one step ahead, on the newest comparable runs")]
    losses: Annotated[dict[str, float], Field(description="mean pinball loss of log seconds of every method")]
    skill: Annotated[float | None, Field(description="1 - loss / loss of always-the-cohort-median; null if unknown")]
    promised_coverage: Annotated[float, Field(description="share of runs the widest interval holds, if they are alike")]
    validated_runs: int
    runs: Annotated[int, Field(description="earlier runs of this workload on this system")]
    cohort_runs: Annotated[int, Field(description="of them, runs of this configuration and scale")]
    warnings: tuple[str, ...]

    left_out: Annotated[int, Field(description="earlier runs that were slow for a known cause, and not learned from")]

    @classmethod
    def of(cls, question: Question, outlook: Outlook) -> Self:
        """The prediction as it looks on the wire."""
        made = outlook.prediction
        pairs = zip(made.levels, made.seconds, strict=True)
        quantiles = [QuantileView(level=level, seconds=seconds) for level, seconds in pairs]
        told = {"workload": question.workload, "system": question.system, "outcome": outlook.outcome, "unit": "s"}
        worth = {"skill": outlook.skill, "left_out": outlook.left_out}
        return cls.model_validate({**vars(made), **told, **worth, "quantiles": quantiles})


@router.post("")
def predict(asked: PredictionAsk, store: StoreOf) -> PredictionView:
    """The median step time, or run time, of the next run of this configuration, as quantiles; stores nothing."""
    question = Question(asked.workload, asked.system, asked.configuration, asked.world_size)
    return PredictionView.of(question, next_run(store, question))
