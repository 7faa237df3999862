"""Studies: searches over a space of configurations."""

import time
from typing import Annotated, Any, Self

from fastapi import APIRouter, Depends, Query, Request, Response, status
from pydantic import (
    Field,
    JsonValue,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    StringConstraints,
    TypeAdapter,
    WrapValidator,
)

from crosswind.api.delivery.validators import UNLESS_CATALOG_IS_UNCHANGED
from crosswind.api.dependencies import StoreOf, StudyServiceOf
from crosswind.api.idempotency import RequestKeyOf
from crosswind.api.paging import ListQuery, Page
from crosswind.api.routes.trials import TrialView
from crosswind.api.tables.listing import JSON_ROWS_MAX, Listing
from crosswind.api.wire import Id, Name, RequestBody, View, refuse_unknown_query
from crosswind.data.schema.answers.fields import rfc3339
from crosswind.data.schema.answers.studies import StudySources
from crosswind.data.schema.run import new_ulid
from crosswind.data.schema.trial import (
    HOURS_MAX,
    TRIALS_MAX,
    Study,
    StudyState,
    TrialState,
    is_wrapped,
    unit_of_objective,
)
from crosswind.models.tuner.service.service import StudyStatus
from crosswind.models.tuner.space.expression import LENGTH_MAX
from crosswind.models.tuner.space.parameter import DESCRIPTION_MAX
from crosswind.models.tuner.space.requirements import CONSTRAINTS_MAX

router = APIRouter(prefix="/v1/studies", tags=["studies"], dependencies=[Depends(refuse_unknown_query)])
LARGEST = 2**62  # random numbers between ends further out would overflow
Bound = Annotated[int | float, Field(ge=-LARGEST, le=LARGEST)]
Claim = Annotated[str, StringConstraints(min_length=1, max_length=LENGTH_MAX)]
Choice = (
    StrictBool
    | Annotated[StrictInt, Field(ge=-LARGEST, le=LARGEST)]
    | Annotated[StrictFloat, Field(ge=-LARGEST, le=LARGEST)]
    | Annotated[StrictStr, StringConstraints(max_length=1000)]
)


class DomainBody(RequestBody):
    """The values that one parameter may take."""

    kind: Annotated[str, Field(description="int, float, ordinal, categorical or boolean")]
    low: Bound | None = None
    high: Bound | None = None
    log: bool | None = None
    step: Annotated[
        int | None, Field(ge=1, le=LARGEST, description="of an int: every so many-th number from low on")
    ] = None
    values: Annotated[list[Choice] | None, Field(max_length=10_000)] = None
    when: Annotated[Claim | None, Field(description="applies only then; absent from configurations otherwise")] = None
    description: Annotated[str | None, StringConstraints(max_length=DESCRIPTION_MAX)] = None


Domains = Annotated[dict[Name, DomainBody], Field(min_length=1, max_length=200)]
Scalars = Annotated[dict[Name, Choice], Field(max_length=200)]


class SpaceBody(RequestBody):
    """Parameters and what binds them."""

    parameters: Annotated[dict[Name, DomainBody], Field(max_length=200)]
    constraints: Annotated[
        list[Claim], Field(max_length=CONSTRAINTS_MAX, description="such as dp * tp * pp == ranks; all must hold")
    ] = []  # noqa: RUF012 - pydantic copies it
    facts: Annotated[Scalars, Field(description="what constraints may name beside the parameters")] = {}  # noqa: RUF012
    transformer: Annotated[
        Scalars, Field(description="sizes and device of a transformer: lets constraints say fits_memory")
    ] = {}  # noqa: RUF012


PLAIN: TypeAdapter[dict[str, DomainBody]] = TypeAdapter(Domains)


def _space(value: Any, _: object) -> dict[str, DomainBody] | SpaceBody:
    """Parameters alone, or with what binds them; an error is then about the form that was meant."""
    return (
        SpaceBody.model_validate(value)
        if isinstance(value, dict) and is_wrapped(value)
        else PLAIN.validate_python(value)
    )


class StudyRequest(RequestBody):
    """The search that is to be made."""

    name: Name
    space: Annotated[Domains | SpaceBody, WrapValidator(_space)]
    objective: Annotated[Name, Field(description="what is made smaller, such as step_p50_seconds")]
    unit: Annotated[
        str | None, StringConstraints(max_length=64), Field(description="if absent, the one in which the name ends")
    ] = None
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    trials_max: Annotated[int | None, Field(ge=1, le=TRIALS_MAX, description="the budget: begins no more")] = None
    details: Annotated[
        dict[Name, JsonValue],
        Field(
            max_length=100,
            description="what else it is about; objectives, limits, hours, repeats and sources are heeded, all kept",
        ),
    ] = {}  # noqa: RUF012 - pydantic copies it


class ExtendRequest(RequestBody):
    """An addition to the study's budget."""

    trials: Annotated[int | None, Field(ge=1, le=TRIALS_MAX)] = None
    hours: Annotated[
        float | None, Field(gt=0, le=HOURS_MAX, description="from now on, or from the end of the present ones")
    ] = None


class RenameRequest(RequestBody):
    """The study's new name."""

    name: Name
    force: Annotated[bool, Field(description="also while trials are leased")] = False


class DeleteRequest(RequestBody):
    """The deletion of a study."""

    force: Annotated[bool, Field(description="also while trials are leased")] = False


class DeletedView(View):
    """The study that is no more."""

    deleted: str


class StudyView(View):
    """One search; objectives of its trials are kept so that lower is better: negated with the direction maximise."""

    study_id: str
    name: str
    space: dict[str, JsonValue]
    objective: str
    unit: str
    seed: int
    trials_max: int | None
    state: Annotated[StudyState, Field(description="paused: asks for trials are refused; stopped: they get none")]
    details: dict[str, JsonValue]
    created_at: str | None
    created_ns: int

    @classmethod
    def of(cls, study: Study) -> Self:
        """The study as it looks on the wire."""
        return cls.model_validate(_fields(study))


class StudyStatusView(StudyView):
    """One search, and how far it is."""

    trials: dict[TrialState, int]
    best: Annotated[TrialView | None, Field(description="of the smallest first objective within the limits")]
    best_measured: Annotated[
        float | None, Field(description="objective of the best as it was measured: its negative with maximise")
    ]
    front: Annotated[
        list[TrialView],
        Field(description="within the limits, none beaten in every objective by another; with one objective the best"),
    ]
    outside: Annotated[int, Field(description="complete trials that exceed a limit")]
    unjudged: Annotated[int, Field(description="complete trials whose outcomes do not tell every objective and limit")]
    ends_at: Annotated[str | None, Field(description="when the study's hours are over")]
    ends_ns: int | None
    uncharged: Annotated[int, Field(description="trials that do not count for the budget")]
    enough: Annotated[str | None, Field(description="why a study that stops by itself begins no more trials")]
    is_exhausted: Annotated[
        bool,
        Field(description="whether the budget is spent and every trial has ended, or it was stopped or its hours over"),
    ]
    sources: Annotated[StudySources, Field(description="what its search learns from, and what was left out")]

    @classmethod
    def of_status(cls, status: StudyStatus) -> Self:
        """The study and its status as they look on the wire."""
        best, objective = (TrialView.of(status.best), status.best.trial.objective) if status.best else (None, None)
        return cls.model_validate(
            {
                **_fields(status.study),
                "trials": status.counts,
                "best": best,
                "best_measured": None if objective is None else status.study.signed(objective),
                "front": [TrialView.of(record) for record in status.front],
                "outside": status.outside,
                "unjudged": status.unjudged,
                "ends_at": rfc3339(status.ends_ns),
                "ends_ns": status.ends_ns,
                "uncharged": status.uncharged,
                "enough": status.enough or None,
                "is_exhausted": status.is_exhausted,
                "sources": status.sources,
            }
        )


class StudyPage(Page):
    """Part of the studies, newest first."""

    studies: list[StudyView]


class StudyStatusPage(Page):
    """Part of the studies, newest first, and how far they are."""

    studies: list[StudyStatusView]


STUDY_ORDERS, STUDY_KEY = ("-created_ns", "name"), ("study_id",)
STUDIES = Listing(StudyPage, "studies", STUDY_ORDERS, STUDY_KEY)
STATUSES = Listing(StudyStatusPage, "studies", STUDY_ORDERS, STUDY_KEY, rows_max=JSON_ROWS_MAX)


@router.get("", **STUDIES.route, dependencies=[UNLESS_CATALOG_IS_UNCHANGED])
def list_studies(query: Annotated[ListQuery, Query()], request: Request, store: StoreOf) -> Response:
    """Return studies, newest first."""
    asked = STUDIES.asked(query, request)
    with store.catalog.read() as session:
        return asked.answer([StudyView.of(study) for study in session.studies.part(asked.part)])


@router.get(":status", **STATUSES.route)
def list_study_status(query: Annotated[ListQuery, Query()], request: Request, service: StudyServiceOf) -> Response:
    """Return studies and how far they are, newest first."""
    asked = STATUSES.asked(query, request)
    return asked.answer([StudyStatusView.of_status(status) for status in service.studies(asked.part)])


@router.post("", status_code=status.HTTP_201_CREATED)
def create_study(body: StudyRequest, response: Response, service: StudyServiceOf, request: RequestKeyOf) -> StudyView:
    """A new study; with an Idempotency-Key, the same request again gets the same study."""
    study = service.create(new_study(body), request=request)
    response.headers["Location"] = f"/v1/studies/{study.study_id}"
    return StudyView.of(study)


@router.get("/{study_id}")
def get_study(study_id: Id, service: StudyServiceOf) -> StudyStatusView:
    """One study by id or name, and how far it is."""
    return StudyStatusView.of_status(service.status(study_id))


@router.post("/{study_id}:extend")
def extend_study(study_id: Id, body: ExtendRequest, service: StudyServiceOf, request: RequestKeyOf) -> StudyView:
    """The study with a larger budget; with an Idempotency-Key, the same request again adds nothing."""
    return StudyView.of(service.extend(study_id, trials=body.trials, hours=body.hours, request=request))


@router.post("/{study_id}:pause")
def pause_study(study_id: Id, service: StudyServiceOf, request: RequestKeyOf) -> StudyView:
    """The study, which hands out no trial until it goes on; leases run on and results are taken; 409 once stopped."""
    return StudyView.of(service.pause(study_id, request=request))


@router.post("/{study_id}:resume")
def resume_study(study_id: Id, service: StudyServiceOf, request: RequestKeyOf) -> StudyView:
    """The study, which hands out trials again after a pause or a stop."""
    return StudyView.of(service.resume(study_id, request=request))


@router.post("/{study_id}:stop")
def stop_study(study_id: Id, service: StudyServiceOf, request: RequestKeyOf) -> StudyView:
    """The study, which hands out no more trials, so that its workers end; leases run on and results are taken."""
    return StudyView.of(service.stop(study_id, request=request))


@router.post("/{study_id}:rename")
def rename_study(study_id: Id, body: RenameRequest, service: StudyServiceOf, request: RequestKeyOf) -> StudyView:
    """The study under another name, its id unchanged; 409 while trials are leased, unless by force."""
    return StudyView.of(service.rename(study_id, body.name, force=body.force, request=request))


@router.post("/{study_id}:delete")
def delete_study(
    study_id: Id, service: StudyServiceOf, request: RequestKeyOf, body: DeleteRequest | None = None
) -> DeletedView:
    """Removes the study with its trials, stored runs stay; 409 while trials are leased, unless by force."""
    service.delete(study_id, force=(body or DeleteRequest()).force, request=request)
    return DeletedView(deleted=study_id)


def new_study(body: StudyRequest) -> Study:
    """Return the study of a request, under a fresh id."""
    unit = unit_of_objective(body.objective) if body.unit is None else body.unit
    fields = {**body.model_dump(), "unit": unit, "space": _plain(body.space)}
    return Study.from_json({**fields, "study_id": new_ulid(), "created_ns": time.time_ns()})


def _plain(space: dict[str, DomainBody] | SpaceBody) -> dict[str, object]:
    if isinstance(space, SpaceBody):
        fields = space.model_dump(exclude_none=True)
        return {name: value for name, value in fields.items() if value or name == "parameters"}
    return {name: domain.model_dump(exclude_none=True) for name, domain in space.items()}


def _fields(study: Study) -> dict[str, Any]:
    return {**study.as_json(), "created_at": rfc3339(study.created_ns)}
