"""Predictions of how long runs to come will take."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import Field

from crosswind.api.stored import RunPredictorOf
from crosswind.api.wire import Ask, Name, Value, Values, View, plain_json, refuse_unknown_query
from crosswind.data.schema.carbon import Origin
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.question import RANKS_MAX, Question
from crosswind.data.schema.trial import Parameter
from crosswind.models.energy.load_power import PowerBasis
from crosswind.models.energy.measured import Scope
from crosswind.models.next_run.answer import Basis
from crosswind.models.next_run.cases import Outcome
from crosswind.models.next_run.predictor import RunPredictor

router = APIRouter(prefix="/v1/predictions", tags=["predictions"], dependencies=[Depends(refuse_unknown_query)])
BATCH_MAX = 10_000
Ranks = Annotated[int, Field(ge=1, le=RANKS_MAX, description="number of ranks; of jobs, of nodes")]


class RunAsk(Ask):
    """The run that is asked about."""

    workload: Name
    system: Name
    configuration: Values = Field(default_factory=dict)
    world_size: Ranks
    node_count: Annotated[int | None, Field(ge=1, le=RANKS_MAX)] = None
    outcome: Annotated[Outcome | None, Field(strict=False, description="null: the finest that was recorded")] = None

    @property
    def question(self) -> Question:
        """In the words of the models. Raises: InvalidInputError."""
        return Question(self.workload, self.system, self.configuration, self.world_size, self.node_count)


class PredictionAsk(RunAsk):
    """A run, and a limit that it may exceed."""

    limit_seconds: Annotated[float | None, Field(gt=0, description="how likely is it to take longer?")] = None


class QuantileView(View):
    """With probability `level` the outcome is no more than `seconds`."""

    level: float
    seconds: float


class EvidenceView(View):
    """An earlier run that the answer leans on; `distance` 0 is the same cohort."""

    run_id: str
    workload: str
    system: str
    world_size: int
    seconds: float
    distance: float


class WorthView(View):
    """Score of answers on this basis, on runs later than those learned from; null where too few could be asked."""

    runs: int
    skill: Annotated[float | None, Field(description="1 - loss / loss of always-the-cohort-median")]
    coverage_90: Annotated[float | None, Field(description="share that fell into the 90 % interval")]


class MemoryView(View):
    """Bytes on the fullest rank by formulas, and whether they fit the accelerator; null where none is named."""

    bytes: float
    device: str | None
    device_bytes: float | None
    fits: bool | None


class EnergyView(View):
    """Energy of the outcome: its median and 90 % interval, and what a node's power is taken from.

    `origin` is measured where runs of the workload were metered on this system; `scope` is what those meters hear.
    """

    joules: float
    low_joules: float
    high_joules: float
    node_watts: Annotated[float | None, Field(description="null where nothing tells how ranks are spread")]
    node_count: int | None
    origin: Origin
    scope: Scope
    basis: PowerBasis
    metered_runs: int
    carbon_grams: Annotated[float | None, Field(description="of the median; null where no intensity is set")]


class PredictionView(View):
    """The distribution of one run's outcome, what it rests on, and what such answers were worth.

    `outcome` is step_p50_seconds where earlier runs recorded steps, run_seconds where they did not, and job_seconds
    where only the scheduler knows of them: `world_size` is then the number of nodes.
    """

    workload: str
    system: str
    world_size: int
    outcome: str
    unit: str
    quantiles: tuple[QuantileView, ...]
    basis: Basis
    distance: Annotated[float | None, Field(description="to the nearest cohort; above 1 is farther than is usual")]
    is_outside: bool
    evidence: tuple[EvidenceView, ...]
    cohort_runs: Annotated[int, Field(description="earlier runs of this configuration and scale on this system")]
    runs: Annotated[int, Field(description="earlier runs of this workload, anywhere")]
    worth: WorthView
    model: Annotated[str | None, Field(description="NAME/VERSION; null was fitted for this question")]
    memory: Annotated[MemoryView | None, Field(description="where the configuration tells the network")]
    energy: Annotated[EnergyView | None, Field(description="null where neither a meter nor a data sheet tells power")]
    limit_seconds: float | None
    exceedance: Annotated[float | None, Field(description="probability of taking longer than limit_seconds")]
    warnings: tuple[str, ...]


class BatchView(View):
    """Quantiles of many runs: `seconds[i][j]` at `levels[j]`, and what each rests on."""

    outcome: str
    unit: str
    levels: tuple[float, ...]
    seconds: list[list[float]]
    basis: tuple[Basis, ...]
    is_outside: tuple[bool, ...]
    model: str | None


class BatchAsk(Ask):
    """Many runs of one workload on one system: of what differs between them, lists of the same length."""

    workload: Name
    system: Name
    world_size: Annotated[list[Ranks], Field(min_length=1, max_length=BATCH_MAX)]
    configuration: Annotated[dict[Name, Value | list[Value]], Field(max_length=200)] = Field(default_factory=dict)
    outcome: Annotated[Outcome | None, Field(strict=False)] = None

    @property
    def questions(self) -> list[Question]:
        """One for each number of ranks. Raises: InvalidInputError naming a list of another length."""
        count = len(self.world_size)
        columns = {name: _column(name, value, count) for name, value in self.configuration.items()}
        rows = zip(*columns.values(), strict=True) if columns else [()] * count
        return [
            Question(self.workload, self.system, dict(zip(columns, row, strict=True)), ranks)
            for row, ranks in zip(rows, self.world_size, strict=True)
        ]


@router.post("", response_model=PredictionView)
async def predict(asked: PredictionAsk, request: Request) -> Response:
    """Predict how long a run to come will take, as quantiles; stores nothing."""
    predictor: RunPredictor = request.app.state.run_predictor  # a dependency costs a tenth of an answer
    question, outcome, limit = asked.question, asked.outcome, asked.limit_seconds
    answer = predictor.cached(question, outcome, limit_seconds=limit)
    if answer is None:
        answer = await run_in_threadpool(predictor.answer, question, outcome, limit_seconds=limit)
    return plain_json(answer)


@router.post(":batch", response_model=BatchView)
def predict_many(asked: BatchAsk, predictor: RunPredictorOf) -> Response:
    """Predict how long many runs to come will take, in columns; stores nothing."""
    return plain_json(predictor.answers(asked.questions, asked.outcome))


def _column(name: str, value: Parameter | list[Parameter], count: int) -> list[Parameter]:
    if not isinstance(value, list):
        return [value] * count
    if len(value) != count:
        raise InvalidInputError(f"configuration {name} has {len(value)} values, expected {count} as world_size has")
    return value
