"""Models: their versions, what each is worth, and which one answers."""

from itertools import groupby
from typing import Annotated, Self

from fastapi import APIRouter, Depends, Path, Response, status
from pydantic import Field, StringConstraints

from crosswind.api.requests import RequestOf
from crosswind.api.routes.operations import OperationView
from crosswind.api.stored import RunnerOf, StoreOf
from crosswind.api.wire import Ask, Id, View, refuse_unknown_query, rfc3339
from crosswind.data.schema.model import ModelRecord, ModelState
from crosswind.models.registry.evidence import skill_of
from crosswind.models.registry.registry import REASON_CHARACTERS_MAX

router = APIRouter(prefix="/v1/models", tags=["models"], dependencies=[Depends(refuse_unknown_query)])
Number = Annotated[int, Path(ge=1, lt=2**31)]
Reason = Annotated[str, StringConstraints(min_length=1, max_length=REASON_CHARACTERS_MAX)]


class PromoteAsk(Ask):
    """With `forced_because`, a version is promoted that does not beat the baselines; the reason is kept."""

    forced_because: Reason | None = None


class RollbackAsk(Ask):
    """The version that is to be taken back, and why; another one that answers by now is a 409."""

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
    """One version: what it learned from, how it fared on later rows, and where it stands."""

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
        """The version as it looks on the wire."""
        evidence, learned = record.evidence, record.evidence.learned
        moments = {"made": record.made_ns, "promoted": record.promoted_ns, "from": learned.from_ns, "to": learned.to_ns}
        coverage = [CoverageView(level=level, share=share) for level, share in evidence.coverage]
        history = [ChangeView(at=rfc3339(change.at_ns), **vars(change)) for change in record.history]
        fields = {**vars(learned), **vars(evidence), **vars(record), "coverage": coverage, "history": history}
        times = {f"{name}_at": rfc3339(ns) for name, ns in moments.items()}
        return cls.model_validate({**fields, **times, "skill": skill_of(evidence)})


class ModelView(View):
    """One model: the version that answers, the newest, and how many there are."""

    name: str
    promoted: VersionView | None
    newest: VersionView
    versions: int
    is_trainable: Annotated[bool, Field(description="whether this server knows how to make it anew")]


class ModelList(View):
    """Every model by name, and the names of those that could be trained but have no version yet."""

    models: list[ModelView]
    trainable: tuple[str, ...]


class VersionList(View):
    """Every version of one model, newest first."""

    name: str
    promoted: int | None
    versions: list[VersionView]


@router.get("")
def list_models(store: StoreOf, runner: RunnerOf) -> ModelList:
    """Every model by name."""
    with store.catalog.read() as session:
        groups = groupby(session.models.all(), key=lambda record: record.name)
        return ModelList(models=[model_view([*records], runner.names) for _, records in groups], trainable=runner.names)


@router.get("/{name}")
def get_model(name: Id, store: StoreOf) -> VersionList:
    """Every version of one model, newest first."""
    with store.catalog.read() as session:
        records = session.models.versions(name)
    promoted = promoted_of(records)
    number = promoted.version if promoted else None
    return VersionList(name=name, promoted=number, versions=[VersionView.of(record) for record in records])


@router.get("/{name}/versions/{version}")
def get_version(name: Id, version: Number, store: StoreOf) -> VersionView:
    """One version."""
    with store.catalog.read() as session:
        return VersionView.of(session.models.get(name, version))


@router.post("/{name}/versions/{version}:promote")
def promote(name: Id, version: Number, runner: RunnerOf, asked: PromoteAsk | None = None) -> VersionView:
    """Lets this version answer, if it beat every baseline; the one that did is retired."""
    forced_because = asked.forced_because if asked else None
    return VersionView.of(runner.registry.promote(name, version, forced_because=forced_because))


@router.post("/{name}:rollback")
def rollback(name: Id, asked: RollbackAsk, runner: RunnerOf) -> VersionView:
    """Takes the promoted version back; the answer is the one that was promoted before it, and is so again."""
    return VersionView.of(runner.registry.rollback(name, asked.reason, version=asked.version))


@router.post("/{name}:train", status_code=status.HTTP_202_ACCEPTED)
def train(name: Id, response: Response, runner: RunnerOf, request: RequestOf) -> OperationView:
    """The operation that makes a new version: a new one, or the one that waits or runs already."""
    operation = runner.ask(name, request=request)
    response.headers["Location"] = f"/v1/operations/{operation.operation_id}"
    return OperationView.of(operation)


def model_view(records: list[ModelRecord], trainable: tuple[str, ...]) -> ModelView:
    """One model as it looks in a list; records: its versions, newest first."""
    promoted, name = promoted_of(records), records[0].name
    return ModelView(
        name=name,
        promoted=VersionView.of(promoted) if promoted else None,
        newest=VersionView.of(records[0]),
        versions=len(records),
        is_trainable=name in trainable,
    )


def promoted_of(records: list[ModelRecord]) -> ModelRecord | None:
    """The version that answers."""
    return next((record for record in records if record.state is ModelState.PROMOTED), None)
