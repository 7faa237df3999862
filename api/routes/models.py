"""Models: their versions, their accuracy, and which one answers."""

from itertools import groupby
from typing import Annotated, Self

from fastapi import APIRouter, Depends, Path, Query, Request, Response, status
from pydantic import Field, StringConstraints

from crosswind.api.delivery.validators import UNLESS_CATALOG_IS_UNCHANGED
from crosswind.api.dependencies import ClientOf, RunnerOf, StoreOf
from crosswind.api.idempotency import RequestKeyOf
from crosswind.api.paging import ListQuery, Page
from crosswind.api.routes.operations import OperationView
from crosswind.api.tables.listing import Listing
from crosswind.api.wire import Id, RequestBody, View, refuse_unknown_query
from crosswind.data.schema.answers.fields import rfc3339
from crosswind.data.schema.model import ModelRecord, ModelState
from crosswind.models.registry.drift import FALSE_ALARM
from crosswind.models.registry.evidence import skill_of
from crosswind.models.registry.registry import REASON_CHARACTERS_MAX
from crosswind.models.training.drifting import DriftNow, drift_now

router = APIRouter(prefix="/v1/models", tags=["models"], dependencies=[Depends(refuse_unknown_query)])
Number = Annotated[int, Path(ge=1, lt=2**31)]
Reason = Annotated[str, StringConstraints(min_length=1, max_length=REASON_CHARACTERS_MAX)]


class PromoteRequest(RequestBody):
    """With `forced_because`, a version is promoted that does not beat the baselines; the reason is kept."""

    forced_because: Reason | None = None


class RollbackRequest(RequestBody):
    """The version to be taken back, and why; a 409 if another one answers by now."""

    version: Annotated[int, Field(ge=1, lt=2**31)]
    reason: Reason


class CoverageView(View):
    """The share of validation rows at or below the quantile of this level."""

    level: float
    share: float


class ChangeView(View):
    """One change of a version's state."""

    at: str | None
    at_ns: int
    state: ModelState
    reason: str


class VersionView(View):
    """One version: its data, its accuracy on later rows, and its state."""

    name: str
    version: int
    state: ModelState
    made_at: str | None
    made_ns: int
    promoted_at: str | None
    promoted_ns: int | None
    rows: Annotated[int, Field(description="rows learned from and validated on")]
    from_at: str | None
    from_ns: int
    to_at: str | None
    to_ns: int
    features: tuple[str, ...]
    sources: dict[str, str]
    parent: Annotated[int | None, Field(description="the version that answered when this one was made")]
    code_version: str
    validated_rows: int
    loss: Annotated[float, Field(description="mean pinball loss of log seconds on the validated rows")]
    baselines: Annotated[dict[str, float], Field(description="the same of the naive baselines on the same rows")]
    skill: Annotated[float | None, Field(description="1 - loss / loss of the best baseline; null if unknown")]
    coverage: list[CoverageView]
    digest: Annotated[str, Field(description="SHA-256 of the file")]
    note: Annotated[str, Field(description="the reason of the newest change")]
    history: list[ChangeView]

    @classmethod
    def of(cls, record: ModelRecord) -> Self:
        """Return the version with its evidence."""
        evidence, learned = record.evidence, record.evidence.learned
        coverage = [CoverageView(level=level, share=share) for level, share in evidence.coverage]
        history = [ChangeView.from_record(change, at=rfc3339(change.at_ns)) for change in record.history]
        values = {**vars(learned), **vars(evidence), "coverage": coverage, "history": history}
        return cls.from_record(record, **values, skill=skill_of(evidence))


class DriftView(View):
    """Tests of the version that answers on the runs since its training; null what cannot be tested."""

    name: str
    version: int
    rows: Annotated[int, Field(description="runs that began after its data window")]
    has_drifted: bool
    coverage_odds: Annotated[float | None, Field(description="evidence against its quantiles")]
    coverage_limit: Annotated[float, Field(description="odds from which the version is taken back")]
    worst: Annotated[str, Field(description="the claim of its quantiles that the runs keep worst, in words")]
    loss: Annotated[float | None, Field(description="mean pinball loss of log seconds on these runs")]
    expected_loss: Annotated[float | None, Field(description="the same on the newest validated rows")]
    loss_excess: Annotated[float | None, Field(description="largest CUSUM of the losses, in standard deviations")]
    loss_limit: Annotated[float | None, Field(description="CUSUM from which the version is taken back")]

    @classmethod
    def of(cls, name: str, now: DriftNow) -> Self:
        """Return the drift with its limits."""
        has_drifted, limit = now.drift.reason is not None, 1 / FALSE_ALARM
        return cls(name=name, version=now.version, has_drifted=has_drifted, coverage_limit=limit, **vars(now.drift))


class ModelView(View):
    """One model: the version that answers, the newest, and how many there are."""

    name: str
    promoted: VersionView | None
    newest: VersionView
    versions: int
    is_trainable: Annotated[bool, Field(description="whether this server can train it")]


class ModelPage(Page):
    """Part of the models, by name, and the names of those that this server can train."""

    models: list[ModelView]
    trainable: tuple[str, ...]


class VersionPage(Page):
    """Part of the versions of one model, newest first."""

    name: str
    promoted: int | None
    versions: list[VersionView]


MODELS = Listing(ModelPage, "models", ("name", "versions"), ("name",))
VERSIONS = Listing(
    VersionPage, "versions", ("-version", "state", "made_ns", "promoted_ns", "from_ns", "to_ns", "rows"), ("version",)
)


@router.get("", **MODELS.route)
def list_models(query: Annotated[ListQuery, Query()], request: Request, store: StoreOf, runner: RunnerOf) -> Response:
    """Return models by name."""
    asked = MODELS.asked(query, request)
    with store.catalog.read() as session:
        groups = groupby(session.models.all(), key=lambda record: record.name)
        models = [model_view([*records], runner.names) for _, records in groups]
    return asked.answer(asked.of_all(models), trainable=runner.names)


@router.get("/{name}", **VERSIONS.route, dependencies=[UNLESS_CATALOG_IS_UNCHANGED])
def get_model(name: Id, query: Annotated[ListQuery, Query()], request: Request, store: StoreOf) -> Response:
    """Return versions of one model, newest first."""
    asked = VERSIONS.asked(query, request)
    with store.catalog.read() as session:
        records, promoted = session.models.part(name, asked.part), session.models.promoted(name)
    number = promoted.version if promoted else None
    return asked.answer([VersionView.of(record) for record in records], name=name, promoted=number)


@router.get("/{name}/versions/{version}", dependencies=[UNLESS_CATALOG_IS_UNCHANGED])
def get_version(name: Id, version: Number, store: StoreOf) -> VersionView:
    """Return one version."""
    with store.catalog.read() as session:
        return VersionView.of(session.models.get(name, version))


@router.get("/{name}/drift")
def get_drift(name: Id, client: ClientOf) -> DriftView:
    """Return how well the runs since its training fit the version that answers, tested every ten minutes at most."""
    return DriftView.of(name, client.compute(client.store, drift_now, name))


@router.post("/{name}/versions/{version}:promote")
def promote_version(name: Id, version: Number, runner: RunnerOf, body: PromoteRequest | None = None) -> VersionView:
    """Promote this version, if it beat every baseline, and retire the one that answered."""
    forced_because = body.forced_because if body else None
    return VersionView.of(runner.registry.promote(name, version, forced_because=forced_because))


@router.post("/{name}:rollback")
def roll_back_model(name: Id, body: RollbackRequest, runner: RunnerOf) -> VersionView:
    """Take the promoted version back; return the one that was promoted before, which is so again."""
    return VersionView.of(runner.registry.rollback(name, body.reason, version=body.version))


@router.post("/{name}:train", status_code=status.HTTP_202_ACCEPTED)
def train_model(name: Id, response: Response, runner: RunnerOf, request: RequestKeyOf) -> OperationView:
    """Return the operation that trains a new version: a new one, or the one that waits or runs already."""
    operation = runner.ask(name, request=request)
    response.headers["Location"] = f"/v1/operations/{operation.operation_id}"
    return OperationView.from_record(operation)


def model_view(records: list[ModelRecord], trainable: tuple[str, ...]) -> ModelView:
    """Return one model as it is listed; `records` are its versions, newest first."""
    promoted, name = promoted_of(records), records[0].name
    return ModelView(
        name=name,
        promoted=VersionView.of(promoted) if promoted else None,
        newest=VersionView.of(records[0]),
        versions=len(records),
        is_trainable=name in trainable,
    )


def promoted_of(records: list[ModelRecord]) -> ModelRecord | None:
    """Return the version that answers."""
    return next((record for record in records if record.state is ModelState.PROMOTED), None)
