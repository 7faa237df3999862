"""Runs, their steps and their explanations."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from crosswind.api.dependencies import ClientOf, StoreOf
from crosswind.api.paging import ListQuery, Page, cursor_of, next_url, place_of
from crosswind.api.routes.step_rows import StepRow, StepsQuery, step_rows
from crosswind.api.wire import Id, Name, refuse_unknown_query
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.explanations import Comparison, Explanation
from crosswind.data.schema.answers.runs import ListedRun, MeasuredRun
from crosswind.data.schema.run import RunState
from crosswind.models.energy.measured import energy_of_run

router = APIRouter(prefix="/v1/runs", tags=["runs"], dependencies=[Depends(refuse_unknown_query)])


class RunPage(Page):
    """Part of the list of runs, newest first."""

    runs: list[ListedRun]


class StepPage(Page):
    """Part of a run's steps, ordered by step and rank; durations in seconds."""

    run_id: str
    steps: list[StepRow]


class RunQuery(ListQuery):
    """Conditions on the runs to list."""

    workload: Name | None = None
    system: Name | None = None
    state: RunState | None = None
    job_id: Name | None = None


@router.get("")
def list_runs(query: Annotated[RunQuery, Query()], request: Request, store: StoreOf) -> RunPage:
    """Return runs, newest first."""
    conditions = RunFilter(query.workload, query.system, query.state, query.job_id)
    with store.catalog.read() as session:
        runs = session.runs.find(conditions, before=place_of(query.cursor, int, str), limit=query.limit)
    last = runs[-1] if len(runs) == query.limit else None
    cursor = cursor_of(last.started_ns or 0, last.run_id) if last else None
    return RunPage(
        runs=[ListedRun(**vars(run), run_seconds=run.seconds) for run in runs],
        next=cursor,
        next_url=next_url(request, cursor),
    )


@router.get("/{run_id}")
def get_run(run_id: Id, client: ClientOf) -> MeasuredRun:
    """Return one run and its energy."""
    with client.store.catalog.read() as session:
        run = session.runs.get(run_id)
    energy = energy_of_run(client.store, run, client.intensity())
    return MeasuredRun(**vars(run), run_seconds=run.seconds, energy=energy)


@router.get("/{run_id}/steps")
def list_steps(
    run_id: Id,
    query: Annotated[StepsQuery, Query()],
    request: Request,
    store: StoreOf,
) -> StepPage:
    """Return every step of every rank, or of one rank, in order."""
    rows, cursor = step_rows(store, run_id, query)
    return StepPage(run_id=run_id, steps=rows, next=cursor, next_url=next_url(request, cursor))


@router.get("/{run_id}/comparison")
def get_comparison(run_id: Id, other: Annotated[Id, Query(alias="with")], client: ClientOf) -> Comparison:
    """Return the causes by which one run took longer a step than the other."""
    return client.compare(run_id, other)


@router.get("/{run_id}/explanation")
def get_explanation(run_id: Id, client: ClientOf) -> Explanation:
    """Return the causes of the run's excess over its cohort."""
    return client.explain(run_id)
