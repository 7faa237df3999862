"""Runs, their steps and their explanations."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import Field

from crosswind.api.dependencies import ClientOf, StoreOf
from crosswind.api.paging import ListQuery, Page, cursor_of, next_url, place_of
from crosswind.api.routes.step_rows import StepRow, StepsQuery, step_rows
from crosswind.api.wire import Id, Name, refuse_unknown_query
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.explanations import Comparison, Explanation
from crosswind.data.schema.answers.runs import ListedRun, MeasuredRun, RunReport
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.features import listed
from crosswind.data.store.store import Store

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
    id_end: Annotated[Name | None, Field(description="the end of their ids")] = None

    @property
    def conditions(self) -> RunFilter:
        """The conditions for the catalog."""
        return RunFilter(self.workload, self.system, self.state, self.job_id, self.id_end)


@router.get("")
def list_runs(query: Annotated[RunQuery, Query()], request: Request, store: StoreOf) -> RunPage:
    """Return runs, newest first."""
    runs, cursor = part_of(query, store)
    return RunPage(runs=[listed(run) for run in runs], next=cursor, next_url=next_url(request, cursor))


def part_of(query: RunQuery, store: Store) -> tuple[list[Run], str | None]:
    """Return the runs of this part of the list, and the cursor of the next part."""
    with store.catalog.read() as session:
        runs = session.runs.find(query.conditions, before=place_of(query.cursor, int, str), limit=query.limit)
    last = runs[-1] if len(runs) == query.limit else None
    return runs, cursor_of(last.started_ns or 0, last.run_id) if last else None


@router.get("/{run_id}")
def get_run(run_id: Id, client: ClientOf) -> MeasuredRun:
    """Return one run and its energy."""
    from crosswind.models.energy.measured import energy_of_run  # noqa: PLC0415 - heavy

    with client.store.catalog.read() as session:
        run = session.runs.get(run_id)
    energy = energy_of_run(client.store, run, client.intensity())
    return MeasuredRun(**vars(run), run_seconds=run.seconds, energy=energy)


@router.get("/{run_id}/report")
def get_run_report(run_id: Id, client: ClientOf) -> RunReport:
    """Return one run with the outcome of its steps, its ranks, who came last to collectives, and its energy."""
    return client.run_report(run_id)


@router.get("/{run_id}/steps")
def list_run_steps(
    run_id: Id,
    query: Annotated[StepsQuery, Query()],
    request: Request,
    store: StoreOf,
) -> StepPage:
    """Return every step of every rank, or of one rank, in order."""
    rows, cursor = step_rows(store, run_id, query)
    return StepPage(run_id=run_id, steps=rows, next=cursor, next_url=next_url(request, cursor))


@router.get("/{run_id}/comparison")
def compare_runs(run_id: Id, other: Annotated[Id, Query(alias="with")], client: ClientOf) -> Comparison:
    """Return the causes by which one run took longer a step than the other."""
    return client.compare(run_id, other)


@router.get("/{run_id}/explanation")
def explain_run(run_id: Id, client: ClientOf) -> Explanation:
    """Return the causes of the run's excess over its cohort."""
    return client.explain(run_id)
