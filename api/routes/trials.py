"""Trials of a study: handed out under leases, and their outcomes."""

from typing import Annotated, Literal, Self

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field, StringConstraints

from crosswind.api.delivery.validators import UNLESS_CATALOG_IS_UNCHANGED
from crosswind.api.dependencies import StoreOf, StudyServiceOf
from crosswind.api.idempotency import RequestKeyOf
from crosswind.api.paging import ListQuery, Page
from crosswind.api.tables.listing import Listing
from crosswind.api.wire import Id, Name, RequestBody, Value, Values, View, refuse_unknown_query
from crosswind.data.schema.answers.fields import rfc3339
from crosswind.data.schema.context import NUMBERS_MAX
from crosswind.data.schema.report import BATCH_MAX, STEP_MAX, Report, TrialReport
from crosswind.data.schema.trial import TrialRecord, TrialState
from crosswind.models.tuner.service.rules import OUTCOMES_MAX, TEXT_MAX
from crosswind.models.tuner.service.service import COUNT_MAX, LEASE_SECONDS_MAX, Lease
from crosswind.models.tuner.variants.for_context import tuner_for_context

router = APIRouter(prefix="/v1/studies/{study_id}", tags=["trials"], dependencies=[Depends(refuse_unknown_query)])
Seconds = Annotated[float, Field(gt=0, le=LEASE_SECONDS_MAX, allow_inf_nan=False)]
LEASE_SECONDS = 3600.0
RunId = Annotated[Name, Field(max_length=64)]


class SuggestRequest(RequestBody):
    """The number of trials wanted, their owner, and the time that they are wanted for."""

    owner: Name
    job: Annotated[Name | None, Field(description="the batch job: asking again, it gets its own trial back")] = None
    count: Annotated[int, Field(ge=1, le=COUNT_MAX)] = 1
    lease_seconds: Seconds = LEASE_SECONDS
    context: Annotated[
        dict[Name, Annotated[float, Field(allow_inf_nan=False)]] | None,
        Field(min_length=1, max_length=NUMBERS_MAX, description="numbers of the input that is to be evaluated"),
    ] = None


class HeartbeatRequest(RequestBody):
    """The owner who still evaluates the trial, and how long the lease is to hold from now."""

    owner: Name
    lease_seconds: Seconds = LEASE_SECONDS


class CompleteRequest(RequestBody):
    """The measured objective. With `owner`, it is refused when another owner holds the trial."""

    objective: Annotated[
        float, Field(allow_inf_nan=False, description="lower is better: negated where the study maximises")
    ]
    owner: Name | None = None
    run_id: RunId | None = None
    outcomes: Annotated[
        dict[Name, Annotated[float, Field(allow_inf_nan=False)]] | None,
        Field(max_length=OUTCOMES_MAX, description="what else was measured, by name"),
    ] = None


class FailRequest(RequestBody):
    """Why there is no objective."""

    reason: Annotated[str, StringConstraints(min_length=1, max_length=4000)]
    state: Literal["failed", "infeasible", "pruned"] = "failed"
    owner: Name | None = None
    charged: Annotated[
        bool, Field(description="false: the configuration is not to blame, and the budget does not count it")
    ] = True


class EnqueueRequest(RequestBody):
    """Configurations that are to be evaluated before anything new."""

    configurations: Annotated[list[Values], Field(min_length=1, max_length=COUNT_MAX)]


class ReleaseRequest(RequestBody):
    """The owner who gives the trial back, and the checkpoint that the next can go on from."""

    owner: Name | None = None
    checkpoint: Annotated[str | None, StringConstraints(min_length=1, max_length=TEXT_MAX)] = None


class ReportBody(RequestBody):
    """An intermediate value of the trial's objective, lower is better."""

    step: Annotated[int, Field(ge=0, le=STEP_MAX)]
    value: Annotated[float, Field(allow_inf_nan=False)]


class ReportRequest(RequestBody):
    """Intermediate values of a trial; one of the same step again replaces the one before."""

    reports: Annotated[list[ReportBody], Field(min_length=1, max_length=BATCH_MAX)]
    owner: Name | None = None


class VerdictView(View):
    """The verdict on a running trial by the study's rule, `stop_early`."""

    stop: Annotated[bool, Field(description="whether the trial should end, as pruned")]
    reason: str | None


class ReportPage(Page):
    """Part of the intermediate values of a study's trials, lower is better, by step and trial."""

    reports: list[TrialReport]


class TrialView(View):
    """One configuration, evaluated or being evaluated; `objective` is null unless the state is done."""

    trial_id: str
    study_id: str
    configuration: dict[str, Value]
    state: TrialState
    objective: Annotated[float | None, Field(description="lower is better: negated where the study maximises")]
    owner: Annotated[str | None, Field(description="who holds the lease, or held it last")]
    lease_expires_at: str | None
    lease_expires_ns: int | None
    run_id: str | None
    reason: str | None
    job: str | None
    checkpoint: Annotated[str | None, Field(description="where the work of an earlier holder can be resumed")]
    outcomes: dict[str, float]
    losses: Annotated[int, Field(description="how often a lease of the trial ran out without a word")]
    weights: Annotated[
        dict[str, float],
        Field(description="when it was suggested, the trust in each source and, as `own`, in the study's own model"),
    ]
    charged: Annotated[bool, Field(description="whether the trial counts for the study's budget")]

    @classmethod
    def of(cls, record: TrialRecord) -> Self:
        """The trial as it looks on the wire."""
        return cls.model_validate({**record.as_json(), "lease_expires_at": rfc3339(record.lease_expires_ns)})


class TrialPage(Page):
    """Part of the trials of one study, oldest first."""

    trials: list[TrialView]


class TrialList(View):
    """Trials of one study that a request made or leased."""

    trials: list[TrialView]

    @classmethod
    def of(cls, records: list[TrialRecord]) -> Self:
        """The trials as they look on the wire."""
        return cls(trials=[TrialView.of(record) for record in records])


TRIALS = Listing(
    TrialPage,
    "trials",
    ("trial_id", "state", "objective", "owner", "lease_expires_ns", "run_id", "job", "losses"),
    ("trial_id",),
)
REPORTS = Listing(ReportPage, "reports", ("step",), ("step", "trial_id"), rows_max=100_000)


@router.get("/trials", **TRIALS.route, dependencies=[UNLESS_CATALOG_IS_UNCHANGED])
def list_trials(study_id: Id, query: Annotated[ListQuery, Query()], request: Request, store: StoreOf) -> Response:
    """Return trials of the study, oldest first."""
    asked = TRIALS.asked(query, request)
    with store.catalog.read() as session:
        records = session.leases.part(session.studies.get(study_id).study_id, asked.part)
    return asked.answer([TrialView.of(record) for record in records])


@router.post("/trials:suggest")
def suggest_trials(study_id: Id, body: SuggestRequest, service: StudyServiceOf, request: RequestKeyOf) -> TrialList:
    """Trials to evaluate next, leased to the owner; 409 `paused` while the study is paused.

    An empty list once budget or space are used up, the hours are over, or the study was stopped.

    With a context, earlier trials of the study that recorded theirs, as outcomes `context.NAME`, decide.
    """
    lease = Lease(body.owner, body.lease_seconds, body.job)
    if body.context:
        service = service.with_tuner(tuner_for_context(body.context, service.trials(study_id)))
    return TrialList.of(service.suggest(study_id, body.count, lease, request=request))


@router.get("/trials/{trial_id}", dependencies=[UNLESS_CATALOG_IS_UNCHANGED])
def get_trial(study_id: Id, trial_id: Id, service: StudyServiceOf) -> TrialView:
    """One trial."""
    return TrialView.of(service.trial(study_id, trial_id))


@router.post("/trials/{trial_id}:heartbeat")
def heartbeat_trial(study_id: Id, trial_id: Id, body: HeartbeatRequest, service: StudyServiceOf) -> TrialView:
    """Renews the lease from now, on the server's clock."""
    return TrialView.of(service.heartbeat(study_id, trial_id, Lease(body.owner, body.lease_seconds)))


@router.post("/trials/{trial_id}:report")
def report_values(study_id: Id, trial_id: Id, body: ReportRequest, service: StudyServiceOf) -> VerdictView:
    """Takes intermediate values of a running trial, and says whether it should stop."""
    reports = [Report(one.step, one.value) for one in body.reports]
    reason = service.report(study_id, trial_id, reports, owner=body.owner)
    return VerdictView(stop=bool(reason), reason=reason or None)


@router.get("/reports", **REPORTS.route, dependencies=[UNLESS_CATALOG_IS_UNCHANGED])
def list_reports(study_id: Id, query: Annotated[ListQuery, Query()], request: Request, store: StoreOf) -> Response:
    """Return intermediate values that the study's trials have reported, by step and trial."""
    asked = REPORTS.asked(query, request)
    with store.catalog.read() as session:
        return asked.answer(session.reports.part(session.studies.get(study_id).study_id, asked.part))


@router.post("/trials/{trial_id}:complete")
def complete_trial(study_id: Id, trial_id: Id, body: CompleteRequest, service: StudyServiceOf) -> TrialView:
    """Takes the measured objective; the same value again gets the same answer, another one 409."""
    record = service.complete(
        study_id, trial_id, body.objective, owner=body.owner, run_id=body.run_id, outcomes=body.outcomes
    )
    return TrialView.of(record)


@router.post("/trials/{trial_id}:fail")
def fail_trial(study_id: Id, trial_id: Id, body: FailRequest, service: StudyServiceOf) -> TrialView:
    """Ends the trial without an objective."""
    state = TrialState(body.state)
    record = service.fail(study_id, trial_id, body.reason, state=state, owner=body.owner, charged=body.charged)
    return TrialView.of(record)


@router.post("/trials:enqueue")
def enqueue_trials(study_id: Id, body: EnqueueRequest, service: StudyServiceOf, request: RequestKeyOf) -> TrialList:
    """New trials of these configurations, which wait for the next who asks; those that wait already are kept."""
    return TrialList.of(service.enqueue(study_id, body.configurations, request=request))


@router.post("/trials/{trial_id}:retry")
def retry_trial(study_id: Id, trial_id: Id, service: StudyServiceOf, request: RequestKeyOf) -> TrialView:
    """A new trial of the same configuration, where this one ended without an objective."""
    return TrialView.of(service.retry(study_id, trial_id, request=request))


@router.post("/trials/{trial_id}:release")
def release_trial(study_id: Id, trial_id: Id, service: StudyServiceOf, body: ReleaseRequest | None = None) -> TrialView:
    """Gives the trial back unmeasured; the next who asks gets it, with the checkpoint."""
    given = body or ReleaseRequest()
    return TrialView.of(service.release(study_id, trial_id, owner=given.owner, checkpoint=given.checkpoint))
