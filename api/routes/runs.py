"""Runs, their steps and their explanations."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from crosswind.api.delivery.validators import UNLESS_CATALOG_IS_UNCHANGED, UNLESS_RUN_IS_UNCHANGED
from crosswind.api.dependencies import ClientOf, StoreOf
from crosswind.api.paging import ListQuery, Page
from crosswind.api.routes.step_rows import WINDOW_ROWS, StepRow, Steps, StepsQuery
from crosswind.api.tables.listing import Asked, Listing
from crosswind.api.tables.times import TimeQuery
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


class RunQuery(ListQuery, TimeQuery):
    """Conditions on the runs to list."""

    workload: Name | None = None
    system: Name | None = None
    state: RunState | None = None
    job_id: Name | None = None
    user: Name | None = None
    account: Name | None = None
    node: Annotated[Name | None, Field(description="one of their nodes")] = None
    id_end: Annotated[Name | None, Field(description="the end of their ids")] = None

    @property
    def conditions(self) -> RunFilter:
        """The conditions for the catalog."""
        return RunFilter(
            *(self.workload, self.system, self.state, self.job_id, self.id_end),
            user=self.user,
            account=self.account,
            since_ns=self.since_ns,
            until_ns=self.until_ns,
            node=self.node,
        )


BY_START = ("-started_ns",)
RUNS = Listing(RunPage, "runs", BY_START, ("run_id",))
STEPS = Listing(StepPage, "steps", ("step",), ("step", "rank"), rows_max=WINDOW_ROWS, is_whole=True)


@router.get("", **RUNS.route, dependencies=[UNLESS_CATALOG_IS_UNCHANGED])
def list_runs(query: Annotated[RunQuery, Query()], request: Request, store: StoreOf) -> Response:
    """Return runs, newest first."""
    asked = RUNS.asked(query, request)
    return asked.answer([listed(run) for run in part_of(query, asked, store)])


def part_of(query: RunQuery, asked: Asked, store: Store) -> list[Run]:
    """Return the runs of this part of the list."""
    with store.catalog.read() as session:
        return session.runs.part(query.conditions, asked.part)


@router.get("/{run_id}")
def get_run(run_id: Id, client: ClientOf) -> MeasuredRun:
    """Return one run and its energy."""
    from crosswind.models.energy.measured import energy_of_run  # noqa: PLC0415 - heavy

    with client.store.catalog.read() as session:
        run = session.runs.get(run_id)
    energy = energy_of_run(client.store, run, client.fitted.intensity())
    return MeasuredRun(**vars(run), run_seconds=run.seconds, energy=energy)


@router.get("/{run_id}/report")
def get_run_report(run_id: Id, client: ClientOf) -> RunReport:
    """Return one run with the outcome of its steps, its ranks, who came last to collectives, and its energy."""
    return client.run_report(run_id)


@router.get("/{run_id}/steps", **STEPS.route, dependencies=[UNLESS_RUN_IS_UNCHANGED])
def list_run_steps(run_id: Id, query: Annotated[StepsQuery, Query()], request: Request, store: StoreOf) -> Response:
    """Return every step of every rank, or of one rank, in order."""
    asked = STEPS.asked(query, request)
    with store.catalog.read() as session:
        run = session.runs.get(run_id)
    return Steps(asked, store, run, query.rank).answer()


@router.get("/{run_id}/comparison")
def compare_runs(run_id: Id, other: Annotated[Id, Query(alias="with")], client: ClientOf) -> Comparison:
    """Return the causes by which one run took longer a step than the other."""
    return client.compare(run_id, other)


@router.get("/{run_id}/explanation")
def explain_run(run_id: Id, client: ClientOf) -> Explanation:
    """Return the causes of the run's excess over its cohort."""
    return client.explain(run_id)
