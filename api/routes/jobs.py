"""Scheduler jobs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from crosswind.api.dependencies import ClientOf, StoreOf
from crosswind.api.paging import ListQuery, Page, cursor_of, next_url, place_of
from crosswind.api.wire import Id, Name, View, refuse_unknown_query
from crosswind.data.schema.answers.jobs import JobReport, ListedJob
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.occupancy import Source
from crosswind.data.store.allocations import allocations_seen
from crosswind.data.store.coverage import coverages
from crosswind.data.store.job_usage import listed_job
from crosswind.data.store.jobs import JobFilter

SystemOf = Annotated[Name | None, Query(description="where several systems have a job of this id")]
router = APIRouter(prefix="/v1/jobs", tags=["jobs"], dependencies=[Depends(refuse_unknown_query)])


class JobPage(Page):
    """Part of the list of jobs, newest first."""

    jobs: list[ListedJob]


class JobQuery(ListQuery):
    """Conditions on the jobs to list; `state` is the scheduler's word, such as COMPLETED."""

    name: Name | None = None
    system: Name | None = None
    user: Name | None = None
    state: Name | None = None


class AllocationView(View):
    """The job's time on one node; `coverage_ratio` is the share of it, until now if it runs, that has samples."""

    system: str | None
    node: str
    sampled_as: str
    restart_count: int
    array_id: str | None
    uid: int | None
    started_at: str | None
    started_ns: int | None
    ended_at: str | None
    ended_ns: int | None
    gpus: tuple[str, ...]
    cpus: int | None
    source: Source
    coverage_ratio: float | None


class AllocationPage(Page):
    """Part of a job's allocations, by system, node and restart."""

    job_id: str
    nodes: list[AllocationView]


@router.get("/{job_id}/nodes")
def list_job_nodes(
    job_id: Id, query: Annotated[ListQuery, Query()], request: Request, store: StoreOf
) -> AllocationPage:
    """Return the nodes and times of a job as its nodes recorded them, and the share that was sampled."""
    after = place_of(query.cursor, str, str, int)
    allocations = allocations_seen(store, job_id, after=after, limit=query.limit)
    if not allocations and not query.cursor and not store.jobs.named(job_id):
        raise NotFoundError(f"job {job_id!r} is not in the store")
    last = allocations[-1] if len(allocations) == query.limit else None
    cursor = cursor_of(last.system, last.node, last.restart_count) if last else None
    nodes = [
        AllocationView.from_record(place, system=place.system or None, coverage_ratio=ratio)
        for place, ratio in zip(allocations, coverages(store, allocations), strict=True)
    ]
    return AllocationPage(job_id=job_id, nodes=nodes, next=cursor, next_url=next_url(request, cursor))


@router.get("/{job_id}")
def get_job(job_id: Id, client: ClientOf, system: SystemOf = None) -> JobReport:
    """Return one job: time limit, time used, efficiency, energy, and its runs with their verdicts."""
    return client.job(job_id, system)


@router.get("")
def list_jobs(query: Annotated[JobQuery, Query()], request: Request, store: StoreOf) -> JobPage:
    """Return jobs, newest first."""
    wanted = JobFilter(query.name, query.system, query.user, query.state)
    jobs = store.jobs.find(wanted, before=place_of(query.cursor, int, str, str), limit=query.limit)
    last = jobs[-1] if len(jobs) == query.limit else None
    cursor = cursor_of(last.started_ns or 0, last.system, last.job_id) if last else None
    return JobPage(jobs=[listed_job(job) for job in jobs], next=cursor, next_url=next_url(request, cursor))
