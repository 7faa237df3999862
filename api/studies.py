"""Studies: searches over a space of configurations."""

import time
from typing import Annotated, Any, Self

from fastapi import APIRouter, Depends, Response, status
from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, StringConstraints

from crosswind.api.requests import RequestOf
from crosswind.api.stored import DeskOf, StoreOf
from crosswind.api.trials import TrialView
from crosswind.api.wire import Ask, Id, Name, View, refuse_unknown_query, rfc3339
from crosswind.data.run import new_ulid
from crosswind.data.trial import Study, TrialState
from crosswind.models.tuner.desk import Standing

router = APIRouter(prefix="/v1/studies", tags=["studies"], dependencies=[Depends(refuse_unknown_query)])
LARGEST = 2**62  # random numbers between ends further out would overflow
Bound = Annotated[int | float, Field(ge=-LARGEST, le=LARGEST)]
Choice = (
    StrictBool
    | Annotated[StrictInt, Field(ge=-LARGEST, le=LARGEST)]
    | Annotated[StrictFloat, Field(ge=-LARGEST, le=LARGEST)]
    | Annotated[StrictStr, StringConstraints(max_length=1000)]
)


class DomainAsk(Ask):
    """The values that one parameter may take."""

    kind: Annotated[str, Field(description="int, float, ordinal, categorical or boolean")]
    low: Bound | None = None
    high: Bound | None = None
    log: bool | None = None
    values: Annotated[list[Choice] | None, Field(max_length=10_000)] = None


class StudyAsk(Ask):
    """The search that is to be made."""

    name: Name
    space: Annotated[dict[Name, DomainAsk], Field(min_length=1, max_length=200)]
    objective: Annotated[Name, Field(description="what is made smaller, such as step_p50_seconds")]
    unit: Annotated[str, StringConstraints(max_length=64)] = "s"
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0


class StudyView(View):
    """One search; a lower objective is better."""

    study_id: str
    name: str
    space: dict[str, dict[str, object]]
    objective: str
    unit: str
    seed: int
    created_at: str | None
    created_ns: int

    @classmethod
    def of(cls, study: Study) -> Self:
        """The study as it looks on the wire."""
        return cls.model_validate(study_fields(study))


class StandingView(StudyView):
    """One search, and how far it is."""

    trials: dict[TrialState, int]
    best: TrialView | None

    @classmethod
    def of_standing(cls, standing: Standing) -> Self:
        """The study and its standing as they look on the wire."""
        best = TrialView.of(standing.best) if standing.best else None
        return cls.model_validate({**study_fields(standing.study), "trials": standing.counts, "best": best})


class StudyList(View):
    """Every study, newest first."""

    studies: list[StudyView]


@router.get("")
def list_studies(store: StoreOf) -> StudyList:
    """Every study, newest first."""
    with store.catalog.read() as session:
        return StudyList(studies=[StudyView.of(study) for study in session.studies.all()])


@router.post("", status_code=status.HTTP_201_CREATED)
def create_study(asked: StudyAsk, response: Response, desk: DeskOf, request: RequestOf) -> StudyView:
    """A new study; with an Idempotency-Key, the same request again gets the same study."""
    study = desk.create(new_study(asked), request=request)
    response.headers["Location"] = f"/v1/studies/{study.study_id}"
    return StudyView.of(study)


@router.get("/{study_id}")
def get_study(study_id: Id, desk: DeskOf) -> StandingView:
    """One study by id or name, and how far it is."""
    return StandingView.of_standing(desk.standing(study_id))


def new_study(asked: StudyAsk) -> Study:
    """The study that is asked for, under a fresh id."""
    space = {name: domain.model_dump(exclude_none=True) for name, domain in asked.space.items()}
    return Study(new_ulid(), asked.name, space, asked.objective, asked.unit, asked.seed, time.time_ns())


def study_fields(study: Study) -> dict[str, Any]:
    """The study's fields, with its time as text beside the number."""
    return {**vars(study), "created_at": rfc3339(study.created_ns)}
