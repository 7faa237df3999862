"""The Models page: the models that answer, their accuracy next to naive baselines, and their history."""

from dataclasses import dataclass
from itertools import groupby

import pandas as pd

from crosswind.client.local import Local
from crosswind.dashboards.drift_wording import drift_words
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.coverage import Coverage, CoveragePoint, coverage_plot, leaderboard
from crosswind.dashboards.pages.page import TUNING, Page, PageQuery, Place
from crosswind.dashboards.wording import count, percent
from crosswind.data.schema.errors import MalformedError, NotFoundError, UnavailableError
from crosswind.data.schema.model import Change, ModelRecord, ModelState
from crosswind.models.registry.drift import Drift
from crosswind.models.registry.evidence import objection, skill_of
from crosswind.models.training.drifting import drift_now
from crosswind.models.training.trainers import TRAINERS

MOST_VERSIONS = 50  # the newest of one model


@dataclass(frozen=True)
class VersionRow:
    """One version; `objection` is the reason not to promote it, if there is one."""

    version: int
    state: str
    made_ns: int
    promoted_ns: int | None
    rows: int
    validated_rows: int
    loss: float
    best_baseline: str | None
    best_loss: float | None
    skill: float | None
    parent: int | None
    objection: str | None
    note: str


@dataclass(frozen=True)
class ModelRow:
    """One model, by the version that answers or else the newest."""

    name: str
    versions: int
    promoted: int | None
    shown: VersionRow


@dataclass(frozen=True)
class ModelsView:
    """The page's contents; `selected` is the model and version in detail, of `held` versions the newest are listed.

    `drift` is that of the version that answers.
    """

    sentence: str
    trust: str
    models: tuple[ModelRow, ...]
    untrained: tuple[str, ...]
    model: str | None
    selected: VersionRow | None
    held: int
    versions: tuple[VersionRow, ...]
    features: tuple[str, ...]
    from_ns: int | None
    to_ns: int | None
    history: tuple[Change, ...]
    charts: tuple[Chart, ...]
    drift: Drift | None = None
    next_place: Place | None = None

    title = "Models"

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        return not self.models


def view(client: Local, query: PageQuery) -> ModelsView:
    """Return every model, and one version of one of them. Raises: NotFoundError, InvalidInputError."""
    with client.store.catalog.read() as session:
        groups = {
            name: list(records) for name, records in groupby(session.models.all(), key=lambda version: version.name)
        }
    untrained = tuple(name for name in TRAINERS if name not in groups)
    if not groups:
        return ModelsView("", "", (), untrained, None, None, 0, (), (), None, None, (), ())
    models = tuple(_model(name, records) for name, records in groups.items())
    name = query.word("model") or next((model.name for model in models if model.promoted), models[0].name)
    record = _record(groups, name, query)
    drift = _drift(client, record)
    return ModelsView(
        sentence=_sentence(models),
        trust=_trust(record, drift),
        models=models,
        untrained=untrained,
        model=name,
        selected=_version(record),
        held=len(groups[name]),
        versions=tuple(map(_version, groups[name][:MOST_VERSIONS])),
        features=record.evidence.learned.features,
        from_ns=record.evidence.learned.from_ns,
        to_ns=record.evidence.learned.to_ns,
        history=record.history[::-1],
        charts=_charts(record),
        drift=drift,
    )


PAGE = Page(
    "models",
    "/models",
    "models.html",
    view,
    TUNING,
    label="Models",
    table="versions",
    fill="crosswind models train step_p50_seconds",
    hint="Learn from your runs",
)


def _record(groups: dict[str, list[ModelRecord]], name: str, query: PageQuery) -> ModelRecord:
    """Return the version of the query, else the one that answers, else the newest."""
    if name not in groups:
        raise NotFoundError(f"model {name[:60]!r} is not registered: expected {', '.join(groups)}")
    records = groups[name]
    if query.word("version") is None:
        return _answering(records) or records[0]
    number = query.amount("version", 1, most=10**9)
    for record in records:
        if record.version == number:
            return record
    raise NotFoundError(f"version {number} of model {name[:60]!r} is not registered")


def _answering(records: list[ModelRecord]) -> ModelRecord | None:
    return next((record for record in records if record.state is ModelState.PROMOTED), None)


def _model(name: str, records: list[ModelRecord]) -> ModelRow:
    promoted = _answering(records)
    return ModelRow(name, len(records), promoted.version if promoted else None, _version(promoted or records[0]))


def _version(record: ModelRecord) -> VersionRow:
    evidence = record.evidence
    best = min(evidence.baselines, key=lambda name: evidence.baselines[name], default=None)
    return VersionRow(
        version=record.version,
        state=str(record.state),
        made_ns=record.made_ns,
        promoted_ns=record.promoted_ns,
        rows=evidence.learned.rows,
        validated_rows=evidence.validated_rows,
        loss=evidence.loss,
        best_baseline=best,
        best_loss=None if best is None else evidence.baselines[best],
        skill=skill_of(evidence),
        parent=record.parent,
        objection=objection(record),
        note=record.note,
    )


def _sentence(models: tuple[ModelRow, ...]) -> str:
    answering = [model for model in models if model.promoted is not None]
    if not answering:
        return f"No model answers yet: no version of {count(len(models), 'model')} is promoted."
    answer = "answers" if len(answering) == 1 else "answer"
    answers = f"{count(len(answering), 'model')} of {len(models)} {answer}"
    compared = [(model.shown.skill, model.name) for model in answering if model.shown.skill is not None]
    if not compared:
        return f"{answers}, compared with no baseline."
    skill, name = max(compared)
    return f"{answers}; {name} {_skill_words(skill)}."


def _drift(client: Local, record: ModelRecord) -> Drift | None:
    """Return the drift of a version that answers; None while it is computed, or if its file cannot be read."""
    if record.state is not ModelState.PROMOTED:
        return None
    try:
        return client.compute(client.store, drift_now, record.name).drift
    except (UnavailableError, MalformedError):
        return None


def _trust(record: ModelRecord, drift: Drift | None) -> str:
    """Return skill, calibration and drift of a version in one sentence."""
    coverage, skill = _coverage(record), skill_of(record.evidence)
    compared = "was compared with no baseline"
    if skill is not None:
        compared = _skill_words(skill)
    calibrated = "its quantiles were not checked"
    if coverage is not None:
        off = [point for point in coverage.points if point.is_off]
        worst = max(off, key=lambda point: abs(point.share - point.level), default=None)
        calibrated = "its quantiles hold" if worst is None else f"its {_quantile_words(worst)}"
    return f"Version {record.version} {compared}; {calibrated}; {_drift_words(record, drift)}."


def _skill_words(skill: float) -> str:
    return f"errs {percent(abs(skill))} {'less' if skill > 0 else 'more'} than the best naive baseline"


def _quantile_words(point: CoveragePoint) -> str:
    return f"P{100 * point.level:g} covers {percent(point.share)} of runs instead of {percent(point.level)}"


def _drift_words(record: ModelRecord, drift: Drift | None) -> str:
    """Return how well later runs fit a version that answers, or whether it was taken back because they did not."""
    if record.state is ModelState.DEMOTED:
        return "it was taken back for drift" if record.note.startswith("drift") else "it was taken back"
    if record.state is not ModelState.PROMOTED:
        return "no drift has taken it back" if record.promoted_ns else "drift is judged once it answers"
    if drift is None:
        return "its drift is not known at the moment"
    return drift_words(drift)


def _coverage(record: ModelRecord) -> Coverage | None:
    points = pd.DataFrame(list(record.evidence.coverage), columns=["level", "share"])
    return coverage_plot(points, runs=record.evidence.validated_rows)


def _charts(record: ModelRecord) -> tuple[Chart, ...]:
    evidence = record.evidence
    losses = [(record.name, evidence.loss, True), *((name, loss, False) for name, loss in evidence.baselines.items())]
    table = pd.DataFrame(losses, columns=["method", "loss", "is_model"]).astype({"is_model": bool})
    charts = (leaderboard(table), _coverage(record))
    return tuple(chart for chart in charts if chart is not None)
