"""Runs, their steps and their explanations."""

from typing import Annotated, Self

from fastapi import APIRouter, Depends, Query, Request

from crosswind.api.routes.step_rows import StepRow, StepsAsked, step_rows
from crosswind.api.stored import ClientOf, StoreOf
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
from crosswind.data.schema.answers.energy import MeasuredEnergy
from crosswind.data.schema.answers.explanations import Comparison, Explanation
from crosswind.data.schema.run import Run, RunState
from crosswind.models.energy.measured import energy_of_run

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


class MeasuredRunView(RunView):
    """One run, and its energy where meters told at least 90 % of it on every node."""

    energy: MeasuredEnergy | None


class RunPage(Page):
    """Part of the list of runs, newest first."""

    runs: list[RunView]


class StepPage(Page):
    """Part of a run's steps, ordered by step and rank; durations in seconds."""

    run_id: str
    steps: list[StepRow]


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
def get_run(run_id: Id, client: ClientOf) -> MeasuredRunView:
    """One run, and the energy that it took."""
    with client.store.catalog.read() as session:
        run = session.runs.get(run_id)
    energy = energy_of_run(client.store, run, client.intensity())
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
def get_comparison(run_id: Id, other: Annotated[Id, Query(alias="with")], client: ClientOf) -> Comparison:
    """Why this run took longer a step than the other, or the other than this one."""
    return client.compare(run_id, other)


@router.get("/{run_id}/explanation")
def get_explanation(run_id: Id, client: ClientOf) -> Explanation:
    """Why the run took as long as it did, compared with its cohort."""
    return client.explain(run_id)
