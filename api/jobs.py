"""Scheduler jobs."""

from typing import Annotated, Self

from fastapi import APIRouter, Depends, Query, Request

from crosswind.api.stored import StoreOf
from crosswind.api.wire import (
    Page,
    Part,
    View,
    cursor_of,
    next_url,
    place_of,
    refuse_unknown_query,
    rfc3339,
)
from crosswind.data.job import Job

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


@router.get("")
def list_jobs(asked: Annotated[Part, Query()], request: Request, store: StoreOf) -> JobPage:
    """Jobs, newest first."""
    with store.catalog.read() as session:
        jobs = session.jobs.find(before=place_of(asked.cursor, int, str, str), limit=asked.limit)
    last = jobs[-1] if len(jobs) == asked.limit else None
    cursor = cursor_of(last.started_ns or 0, last.system, last.job_id) if last else None
    return JobPage(jobs=[JobView.of(job) for job in jobs], next=cursor, next_url=next_url(request, cursor))
