"""Scheduler jobs."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from crosswind.api.dependencies import ClientOf, StoreOf
from crosswind.api.paging import ListQuery, Page
from crosswind.api.tables.listing import Listing
from crosswind.api.tables.times import TimeQuery
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


class JobQuery(ListQuery, TimeQuery):
    """Conditions on the jobs to list; `state` is the scheduler's word, such as COMPLETED."""

    name: Name | None = None
    system: Name | None = None
    user: Name | None = None
    account: Name | None = None
    job_id: Name | None = None
    state: Name | None = None

    @property
    def conditions(self) -> JobFilter:
        """The conditions for the lake."""
        return JobFilter(
            *(self.name, self.system, self.user, self.state, self.account, self.job_id),
            since_ns=self.since_ns,
            until_ns=self.until_ns,
        )


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


JOBS = Listing(JobPage, "jobs", ("-started_ns",), ("system", "job_id"))
ALLOCATIONS = Listing(AllocationPage, "nodes", ("system",), ("system", "node", "restart_count"))


@router.get("/{job_id}/nodes", **ALLOCATIONS.route)
def list_job_nodes(job_id: Id, query: Annotated[ListQuery, Query()], request: Request, store: StoreOf) -> Response:
    """Return the nodes and times of a job as its nodes recorded them, and the share that was sampled."""
    asked = ALLOCATIONS.asked(query, request)
    allocations = allocations_seen(store, job_id, asked.part)
    if not allocations and not query.cursor and not store.jobs.named(job_id):
        raise NotFoundError(f"job {job_id!r} is not in the store")
    nodes = [
        AllocationView.from_record(place, system=place.system or None, coverage_ratio=ratio)
        for place, ratio in zip(allocations, coverages(store, allocations), strict=True)
    ]
    return asked.answer(nodes, job_id=job_id)


@router.get("/{job_id}")
def get_job(job_id: Id, client: ClientOf, system: SystemOf = None) -> JobReport:
    """Return one job: time limit, time used, efficiency, energy, and its runs with their verdicts."""
    return client.job(job_id, system)


@router.get("", **JOBS.route)
def list_jobs(query: Annotated[JobQuery, Query()], request: Request, store: StoreOf) -> Response:
    """Return jobs, newest first."""
    asked = JOBS.asked(query, request)
    return asked.answer([listed_job(job) for job in store.jobs.part(query.conditions, asked.part)])
