"""Allocations of jobs, as far as they may be seen."""

from dataclasses import replace

from crosswind.data.schema.occupancy import Allocation
from crosswind.data.schema.part import Part
from crosswind.data.store.store import Store


def allocations_seen(store: Store, job_id: str, part: Part) -> list[Allocation]:
    """Return part of a job's allocations, as `Places.page`, on the systems whose job of this id may be seen.

    Allocations of an unknown system are the job's where no system has one of this id that may not be seen.
    """
    if part.after is not None:
        system, *rest = part.after
        part = replace(part, after=(system or "", *rest))  # as it is stored where it is not known
    systems = None
    if not store.rule.sees_all:
        systems = systems_of(store, job_id)
        systems |= {""} if systems and systems >= systems_of(store.whole, job_id) else set()
    with store.catalog.read() as session:
        return session.places.page(job_id, part, systems=systems)


def systems_of(store: Store, job_id: str) -> set[str]:
    """Return the systems that have a job of this id, by the accounts and by runs."""
    with store.catalog.read() as session:
        runs = session.runs.systems_of_job(job_id)
    named = {system for system, job in store.rule.jobs if job == job_id}
    return runs | named | {job.system for job in store.jobs.named(job_id)}
