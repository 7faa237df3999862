"""Scheduler jobs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from crosswind.api.dependencies import StoreOf
from crosswind.api.paging import ListQuery, Page, cursor_of, next_url, place_of
from crosswind.api.wire import Id, View, refuse_unknown_query
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.occupancy import Source
from crosswind.data.store.coverage import coverages

router = APIRouter(prefix="/v1/jobs", tags=["jobs"], dependencies=[Depends(refuse_unknown_query)])


class JobView(View):
    """One allocation as the scheduler accounts for it."""

    system: str
    job_id: str
    name: str
    user: str | None
    account: str | None
    partition: str | None
    state: str
    exit_code: int | None
    signal: int | None
    nodes: tuple[str, ...]
    node_count: int | None
    cpu_count: int | None
    submitted_at: str | None
    submitted_ns: int | None
    started_at: str | None
    started_ns: int | None
    ended_at: str | None
    ended_ns: int | None
    elapsed_seconds: float | None
    energy_joules: float | None


class JobPage(Page):
    """Part of the list of jobs, newest first."""

    jobs: list[JobView]


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
def list_nodes(job_id: Id, query: Annotated[ListQuery, Query()], request: Request, store: StoreOf) -> AllocationPage:
    """Return the nodes and times of a job as its nodes recorded them, and the share that was sampled."""
    with store.catalog.read() as session:
        allocations = session.places.page(job_id, after=place_of(query.cursor, str, str, int), limit=query.limit)
    if not allocations and not query.cursor and not store.jobs.named(job_id):
        raise NotFoundError(f"job {job_id!r} is not in the store")
    last = allocations[-1] if len(allocations) == query.limit else None
    cursor = cursor_of(last.system, last.node, last.restart_count) if last else None
    nodes = [
        AllocationView.from_record(place, system=place.system or None, coverage_ratio=ratio)
        for place, ratio in zip(allocations, coverages(store, allocations), strict=True)
    ]
    return AllocationPage(job_id=job_id, nodes=nodes, next=cursor, next_url=next_url(request, cursor))


@router.get("")
def list_jobs(query: Annotated[ListQuery, Query()], request: Request, store: StoreOf) -> JobPage:
    """Return jobs, newest first."""
    jobs = store.jobs.find(before=place_of(query.cursor, int, str, str), limit=query.limit)
    last = jobs[-1] if len(jobs) == query.limit else None
    cursor = cursor_of(last.started_ns or 0, last.system, last.job_id) if last else None
    return JobPage(jobs=[JobView.from_record(job) for job in jobs], next=cursor, next_url=next_url(request, cursor))
