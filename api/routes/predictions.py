"""Predictions of how long runs to come will take."""

from typing import Annotated

from anyio import CapacityLimiter
from fastapi import APIRouter, Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from pydantic import Field

from crosswind.api.dependencies import ClientOf, client_of
from crosswind.api.wire import Name, RequestBody, Value, Values, View, plain_json, refuse_unknown_query
from crosswind.data.schema.answers.predictions import Outcome, PredictionBasis, RunPrediction
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.facts import NAMES, Facts
from crosswind.data.schema.question import NS_MAX, RANKS_MAX, LikeRun, Question
from crosswind.data.schema.trial import Parameter

router = APIRouter(prefix="/v1/predictions", tags=["predictions"], dependencies=[Depends(refuse_unknown_query)])
BATCH_MAX = 10_000
GivenFacts = Annotated[
    Values, Field(description=f"system and software, those of the newest run there where left out: {', '.join(NAMES)}")
]
Date = Annotated[int | None, Field(ge=0, le=NS_MAX, description="when it begins, ns UTC; null: as the newest run")]
Ranks = Annotated[int, Field(ge=1, le=RANKS_MAX, description="number of ranks; of jobs, of nodes")]


class RunRequest(RequestBody):
    """A run to come; one that is `like` a stored run has from it what is not given."""

    like: Annotated[Name | None, Field(description="a stored run: its id, the end of one, or `latest`")] = None
    workload: Annotated[Name | None, Field(description="required without `like`")] = None
    system: Annotated[Name | None, Field(description="required without `like`")] = None
    configuration: Values = Field(default_factory=dict)
    world_size: Annotated[Ranks | None, Field(description="number of ranks; of jobs, of nodes")] = None
    node_count: Annotated[int | None, Field(ge=1, le=RANKS_MAX)] = None
    facts: GivenFacts = Field(default_factory=dict)
    started_ns: Date = None
    outcome: Annotated[Outcome | None, Field(strict=False, description="null: the finest that was recorded")] = None

    @property
    def question(self) -> Question | LikeRun:
        """Return the run as clients take it. Raises: InvalidInputError naming what is missing."""
        size, rest = (self.world_size, self.node_count), (Facts.of(self.facts), self.started_ns)
        if self.like is not None:
            return LikeRun(self.like, self.workload, self.system, self.configuration, *size, *rest)
        if self.workload is None or self.system is None or self.world_size is None:
            required = ("workload", "system", "world_size")
            missing = [name for name in required if getattr(self, name) is None]
            raise InvalidInputError(f"{', '.join(missing)}: missing, expected unless `like` names a stored run")
        return Question(self.workload, self.system, self.configuration, self.world_size, self.node_count, *rest)


class PredictionRequest(RunRequest):
    """A run to come, and a limit that it may exceed."""

    limit_seconds: Annotated[float | None, Field(gt=0, description="how likely is it to take longer?")] = None


class PredictionBatch(View):
    """Quantiles of many runs: `seconds[i][j]` at `levels[j]`, and what each rests on."""

    outcome: str
    unit: str
    levels: tuple[float, ...]
    seconds: list[list[float]]
    basis: tuple[PredictionBasis, ...]
    is_outside: tuple[bool, ...]
    model: str | None


class BatchRequest(RequestBody):
    """Many runs of one workload on one system: of what differs between them, lists of the same length."""

    workload: Name
    system: Name
    world_size: Annotated[list[Ranks], Field(min_length=1, max_length=BATCH_MAX)]
    configuration: Annotated[dict[Name, Value | list[Value]], Field(max_length=200)] = Field(default_factory=dict)
    facts: GivenFacts = Field(default_factory=dict)
    started_ns: Date = None
    outcome: Annotated[Outcome | None, Field(strict=False)] = None

    @property
    def questions(self) -> list[Question]:
        """Return a run for each number of ranks. Raises: InvalidInputError naming a list of another length."""
        count = len(self.world_size)
        columns = {name: _column(name, value, count) for name, value in self.configuration.items()}
        rows = zip(*columns.values(), strict=True) if columns else [()] * count
        rest = (None, Facts.of(self.facts), self.started_ns)
        return [
            Question(self.workload, self.system, dict(zip(columns, row, strict=True)), ranks, *rest)
            for row, ranks in zip(rows, self.world_size, strict=True)
        ]


@router.post("", response_model=RunPrediction)
async def predict(body: PredictionRequest, request: Request) -> Response:
    """Predict how long a run to come will take, as quantiles; stores nothing."""
    client = await client_of(request)  # a dependency costs a tenth of an answer
    question, outcome, limit = body.question, body.outcome, body.limit_seconds
    answer = None
    if isinstance(question, Question):
        answer = client.predicted(question, outcome, limit_seconds=limit)
    if answer is None:
        async with _places(request):
            answer = await run_in_threadpool(client.predict, question, outcome, limit_seconds=limit)
    return plain_json(answer)


@router.post(":batch", response_model=PredictionBatch)
def predict_many(body: BatchRequest, client: ClientOf) -> Response:
    """Predict how long many runs to come will take, in columns; stores nothing."""
    return plain_json(client.predict_many(body.questions, body.outcome))


def _places(request: Request) -> CapacityLimiter:
    """Return the places of those whose answer is not cached: few are computed at once."""
    places: CapacityLimiter = request.app.state.prediction_places
    return places


def _column(name: str, value: Parameter | list[Parameter], count: int) -> list[Parameter]:
    if not isinstance(value, list):
        return [value] * count
    if len(value) != count:
        raise InvalidInputError(f"configuration {name} has {len(value)} values, expected {count} as world_size has")
    return value
