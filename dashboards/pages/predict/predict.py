"""The Predict page: the time, time limit, scaling, energy and cost of a run to come."""

from dataclasses import dataclass, replace

from crosswind.client.local import Local
from crosswind.dashboards.figures.chart import Chart
from crosswind.dashboards.figures.forecasts.distribution import time_distribution
from crosswind.dashboards.figures.forecasts.scaling import scaling_plot
from crosswind.dashboards.pages.page import PREDICT, RUN, Page, PageQuery, Place
from crosswind.dashboards.pages.predict.forecast import Forecast, Forecasting
from crosswind.dashboards.pages.predict.form import CONFIDENCES, USUAL, Form, text_of, with_script
from crosswind.dashboards.pages.predict.knobs import Knob, knobs_of
from crosswind.dashboards.pages.predict.script import JobScript
from crosswind.dashboards.wording import count, seconds
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.jobs import JobFilter

NEWEST, EXAMPLES = 500, 6  # runs whose names can be chosen; of them as many to begin with
FIELDS = {"world_size": "ranks", "node_count": "nodes", "configuration": "config", "run": "like"}  # in refusals


@dataclass(frozen=True)
class Example:
    """A stored run to begin with."""

    run_id: str
    workload: str
    system: str
    ranks: int | None


@dataclass(frozen=True)
class PredictView:
    """The page's contents; without a run in the address examples, and after one that was refused the reason.

    `refused` is the field that the reason is about, `implied` has what empty fields stand for.
    """

    sentence: str
    form: Form
    implied: Form
    confidence: str
    confidences: tuple[str, ...]
    workloads: tuple[str, ...]
    systems: tuple[str, ...]
    script: str
    read: JobScript | None
    refusal: str
    refused: str
    forecast: Forecast | None
    knobs: tuple[Knob, ...]
    examples: tuple[Example, ...]
    has_jobs: bool
    charts: tuple[Chart, ...] = ()
    next_place: Place | None = None

    title = "Predict"

    @property
    def is_empty(self) -> bool:
        """Return whether too little is stored for the page."""
        return not (self.workloads or self.has_jobs)

    @property
    def names_runs(self) -> bool:
        """Return whether the evidence are runs, which have pages, and no jobs."""
        return self.forecast is not None and self.forecast.answer.outcome != Outcome.JOB


def view(client: Local, query: PageQuery) -> PredictView:
    """Return the form, and the forecast of the run that it describes."""
    text, form, read = query.parameters.get("script", ""), Form.of(query), None
    if text.strip():
        form, read = with_script(client, form, text)
    made, refusal = None, ""
    if not form.is_empty:
        try:
            made = client.compute(client.store, Forecasting(form, _promoted(client), client))
        except (InvalidInputError, NotFoundError) as error:
            refusal = str(error).removeprefix("query parameter ")
    elif read:
        refusal = "script: no command was found in it, expected a line such as srun python train.py"
    newest = _newest(client)
    return PredictView(
        sentence=_sentence(made, refusal),
        form=form,
        implied=_implied(form, made),
        confidence=form.confidence or USUAL,
        confidences=tuple(CONFIDENCES),
        workloads=tuple(sorted({run.workload for run in newest})),
        systems=tuple(sorted({run.system for run in newest})),
        script=text,
        read=read,
        refusal=refusal,
        refused=_field(refusal),
        forecast=made,
        knobs=knobs_of(made.question) if made else (),
        examples=() if made else _examples(newest),
        has_jobs=bool(client.store.jobs.find(JobFilter(), limit=1)) if not newest else False,
        charts=_charts(made) if made else (),
    )


PAGE = Page("predict", "/predict", "predict.html", view, PREDICT, label="Predict", table="examples", fill=RUN)


def _promoted(client: Local) -> tuple[str, ...]:
    """Return the versions that answer now."""
    with client.store.catalog.read() as session:
        records = [session.models.promoted(name) for name in Outcome]
    return tuple(f"{record.name}/{record.version}" for record in records if record)


def _newest(client: Local) -> list[Run]:
    with client.store.catalog.read() as session:
        return session.runs.find(RunFilter(state=RunState.COMPLETED), limit=NEWEST)


def _examples(newest: list[Run]) -> tuple[Example, ...]:
    """Return the newest run of each of a few workloads and systems."""
    first = {(run.workload, run.system): run for run in reversed(newest)}
    runs = sorted(first.values(), key=lambda run: run.started_ns or 0, reverse=True)[:EXAMPLES]
    return tuple(Example(run.run_id, run.workload, run.system, run.world_size) for run in runs)


def _implied(form: Form, made: Forecast | None) -> Form:
    """Return what the fields stand for that are empty."""
    if made is None:
        return Form()
    question = made.question
    given = {line.partition("=")[0].strip() for line in form.config.splitlines()}
    lines = (f"{name}={text_of(value)}" for name, value in question.configuration.items() if name not in given)
    return replace(
        Form(),
        workload=question.workload,
        system=question.system,
        ranks=str(question.world_size),
        nodes=str(made.nodes),
        config="\n".join(lines),
    )


def _field(refusal: str) -> str:
    """Return the field that a refusal is about; empty if it is about none."""
    word = refusal.replace("=", " ").replace(":", " ").partition(" ")[0]
    name = FIELDS.get(word, word)
    return name if name in Form.__dataclass_fields__ else ""


def _sentence(made: Forecast | None, refusal: str) -> str:
    if refusal:
        return "This run cannot be predicted."
    if made is None:
        return "How long will the next run take?"
    question, places = made.question, "node" if made.answer.outcome == Outcome.JOB else "rank"
    run = f"{question.workload} on {question.system} with {count(question.world_size, places)}"
    return f"{run} takes {seconds(made.at(0.5))}; nine of ten runs take at most {seconds(made.at(0.9))}."


def _charts(made: Forecast) -> tuple[Chart, ...]:
    limit = max(made.limit.seconds - made.startup_seconds, 0.0)
    charts = (
        time_distribution(made.quantiles, limit),
        None if made.curve is None else scaling_plot(made.curve, nodes=made.nodes, outside=made.outside),
    )
    return tuple(chart for chart in charts if chart)
