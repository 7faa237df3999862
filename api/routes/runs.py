"""Runs, their steps and their explanations."""

from typing import Annotated, Self

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field

from crosswind.api.routes.step_rows import StepRow, StepsAsked, step_rows
from crosswind.api.stored import RunPredictorOf, StoreOf
from crosswind.api.wire import (
    Id,
    Name,
    Page,
    Part,
    Value,
    View,
    cursor_of,
    next_url,
    place_of,
    refuse_unknown_query,
    rfc3339,
)
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.carbon import CarbonIntensity, Origin
from crosswind.data.schema.run import Run, RunState
from crosswind.models.energy.measured import Measured, Scope, measured_energy
from crosswind.models.explain.compare import compare_runs
from crosswind.models.explain.explain import explain_run
from crosswind.models.explain.explanation import Verdict

router = APIRouter(prefix="/v1/runs", tags=["runs"], dependencies=[Depends(refuse_unknown_query)])


class RunView(View):
    """One execution of one workload with one configuration."""

    run_id: str
    workload: str
    system: str
    state: RunState
    world_size: int | None
    configuration: dict[str, Value]
    job_id: str | None
    nodes: tuple[str, ...]
    started_at: str | None
    started_ns: int | None
    ended_at: str | None
    ended_ns: int | None
    run_seconds: float | None
    exit_code: int | None
    command: tuple[str, ...]
    software: dict[str, str]
    tags: dict[str, str]

    @classmethod
    def of(cls, run: Run) -> Self:
        """The run as it looks on the wire."""
        times = {"started_at": rfc3339(run.started_ns), "ended_at": rfc3339(run.ended_ns)}
        return cls.model_validate({**vars(run), **times, "run_seconds": run.seconds})


class MeasuredView(View):
    """Energy of the run's nodes as meters told it, whoever else was on them; `scope` is what those meters hear."""

    joules: float
    origin: Origin
    scope: Scope
    meter: str
    coverage: Annotated[float, Field(description="share of the time of which the worst node's meter told")]
    node_watts: Annotated[float, Field(description="mean power of a node")]
    carbon_grams: Annotated[float | None, Field(description="null where no intensity is set")]

    @classmethod
    def of(cls, measured: Measured, intensity: CarbonIntensity | None) -> Self:
        """The measurement as it looks on the wire."""
        energy, carbon = measured.energy, None if intensity is None else intensity.of(measured.energy).grams
        metered = {"joules": energy.joules, "origin": energy.origin, "node_watts": measured.node_watts}
        return cls.model_validate({**vars(measured), **metered, "carbon_grams": carbon})


class MeasuredRunView(RunView):
    """One run, and its energy where meters told at least 90 % of it on every node."""

    energy: MeasuredView | None


class RunPage(Page):
    """Part of the list of runs, newest first."""

    runs: list[RunView]


class StepPage(Page):
    """Part of a run's steps, ordered by step and rank; durations in seconds."""

    run_id: str
    steps: list[StepRow]


class IntervalView(View):
    """An estimate in seconds with its 90 % interval."""

    value: float | None
    low: float | None
    high: float | None


class ShareView(View):
    """The part of the excess that one cause took, and what speaks for it."""

    cause: str
    seconds: IntervalView
    evidence: str


class ExplanationView(View):
    """Why a run took as long as it did; expected + shares + unexplained = measured, in seconds over `steps`."""

    run_id: str
    verdict: Verdict
    sentence: str
    next_action: str
    cohort_runs: int
    steps: int
    usual_steps: int | None
    measured_seconds: float | None
    expected_seconds: float | None
    excess: IntervalView | None
    shares: tuple[ShareView, ...]
    unexplained: IntervalView | None
    cause: str | None
    also: Annotated[tuple[str, ...], Field(description="further causes that stand out, the largest first")]
    confidence: Annotated[float | None, Field(description="share of replicates with this main cause")]
    culprit_rank: int | None
    culprit_ratio: Annotated[float | None, Field(description="share of steps in which the culprit arrived last")]
    culprit_node: Annotated[
        str | None, Field(description="the culprit's, or the one on whose links most of the cause shows")
    ]
    missing: Annotated[tuple[str, ...], Field(description="what nobody recorded, and what cannot be told without it")]


class ComparisonView(View):
    """By what the slower of two runs took longer.

    `slower_seconds` = `faster_seconds` + `more_steps_seconds` + shares + unexplained; `differing` maps what the runs do
    not have in common to both values, the slower's first.
    """

    slower: str
    faster: str
    sentence: str
    slower_steps: int
    faster_steps: int
    slower_seconds: float
    faster_seconds: float
    more_steps_seconds: float
    difference: IntervalView
    shares: tuple[ShareView, ...]
    also: Annotated[tuple[str, ...], Field(description="causes beside the first that are surely there")]
    unexplained: IntervalView
    differing: dict[str, tuple[str, str]]


class RunQuery(Part):
    """Conditions that the wanted runs meet."""

    workload: Name | None = None
    system: Name | None = None
    state: RunState | None = None
    job_id: Name | None = None


@router.get("")
def list_runs(asked: Annotated[RunQuery, Query()], request: Request, store: StoreOf) -> RunPage:
    """Runs, newest first."""
    wanted = RunFilter(asked.workload, asked.system, asked.state, asked.job_id)
    with store.catalog.read() as session:
        runs = session.runs.find(wanted, before=place_of(asked.cursor, int, str), limit=asked.limit)
    last = runs[-1] if len(runs) == asked.limit else None
    cursor = cursor_of(last.started_ns or 0, last.run_id) if last else None
    return RunPage(runs=[RunView.of(run) for run in runs], next=cursor, next_url=next_url(request, cursor))


@router.get("/{run_id}")
def get_run(run_id: Id, store: StoreOf, service: RunPredictorOf) -> MeasuredRunView:
    """One run, and the energy that it took."""
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    measured = measured_energy(store, [run]).get(run_id)
    energy = None if measured is None else MeasuredView.of(measured, service.intensity)
    return MeasuredRunView(**vars(RunView.of(run)), energy=energy)


@router.get("/{run_id}/steps")
def list_steps(
    run_id: Id,
    asked: Annotated[StepsAsked, Query()],
    request: Request,
    store: StoreOf,
) -> StepPage:
    """Every step of every rank, or of one rank, in order."""
    rows, cursor = step_rows(store, run_id, asked)
    return StepPage(run_id=run_id, steps=rows, next=cursor, next_url=next_url(request, cursor))


@router.get("/{run_id}/comparison")
def get_comparison(run_id: Id, other: Annotated[Id, Query(alias="with")], store: StoreOf) -> ComparisonView:
    """Why this run took longer a step than the other, or the other than this one."""
    return ComparisonView.model_validate(compare_runs(store, run_id, other))


@router.get("/{run_id}/explanation")
def get_explanation(run_id: Id, store: StoreOf) -> ExplanationView:
    """Why the run took as long as it did, compared with its cohort."""
    return ExplanationView.model_validate(explain_run(store, run_id))
