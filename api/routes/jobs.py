"""Scheduler jobs."""

from typing import Annotated, Self

from fastapi import APIRouter, Depends, Query, Request

from crosswind.api.stored import StoreOf
from crosswind.api.wire import (
    Id,
    Page,
    Part,
    View,
    cursor_of,
    next_url,
    place_of,
    refuse_unknown_query,
    rfc3339,
)
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.job import Job
from crosswind.data.schema.occupancy import Allocation, Source
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

    @classmethod
    def of(cls, job: Job) -> Self:
        """The job as it looks on the wire."""
        times = {f"{name}_at": rfc3339(getattr(job, f"{name}_ns")) for name in ("submitted", "started", "ended")}
        return cls.model_validate({**vars(job), **times})


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

    @classmethod
    def of(cls, allocation: Allocation, coverage: float | None) -> Self:
        """The allocation as it looks on the wire."""
        times = {f"{name}_at": rfc3339(getattr(allocation, f"{name}_ns")) for name in ("started", "ended")}
        fields = {**vars(allocation), **times, "system": allocation.system or None, "coverage_ratio": coverage}
        return cls.model_validate(fields)


class AllocationPage(Page):
    """Part of a job's allocations, by system, node and restart."""

    job_id: str
    nodes: list[AllocationView]


@router.get("/{job_id}/nodes")
def list_nodes(job_id: Id, asked: Annotated[Part, Query()], request: Request, store: StoreOf) -> AllocationPage:
    """Return where and when a job ran, as seen on its nodes, and how much of that was sampled."""
    with store.catalog.read() as session:
        allocations = session.places.page(job_id, after=place_of(asked.cursor, str, str, int), limit=asked.limit)
    if not allocations and not asked.cursor and not store.jobs.named(job_id):
        raise NotFoundError(f"job {job_id!r} is not in the store")
    last = allocations[-1] if len(allocations) == asked.limit else None
    cursor = cursor_of(last.system, last.node, last.restart_count) if last else None
    nodes = [AllocationView.of(*pair) for pair in zip(allocations, coverages(store, allocations), strict=True)]
    return AllocationPage(job_id=job_id, nodes=nodes, next=cursor, next_url=next_url(request, cursor))


@router.get("")
def list_jobs(asked: Annotated[Part, Query()], request: Request, store: StoreOf) -> JobPage:
    """Jobs, newest first."""
    jobs = store.jobs.find(before=place_of(asked.cursor, int, str, str), limit=asked.limit)
    last = jobs[-1] if len(jobs) == asked.limit else None
    cursor = cursor_of(last.started_ns or 0, last.system, last.job_id) if last else None
    return JobPage(jobs=[JobView.of(job) for job in jobs], next=cursor, next_url=next_url(request, cursor))
