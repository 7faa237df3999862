"""Predictions as somebody may see them who may not see every run that was fitted."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from crosswind.data.schema.answers.predictions import Outcome, RunPrediction
from crosswind.data.store.store import Store
from crosswind.models.next_run.unknown import NothingKnownError, unvalued


def prediction_seen(store: Store, answer: RunPrediction) -> RunPrediction:
    """Return a prediction that names those runs alone that the store shows; the others count, unnamed."""
    if store.rule.sees_all:
        return answer
    ids = [run.run_id for run in answer.evidence]
    seen = _jobs(store, ids) if answer.outcome == Outcome.JOB else {(None, run_id) for run_id in _runs(store, ids)}
    evidence = tuple(run for run in answer.evidence if {(None, run.run_id), (run.system, run.run_id)} & seen)
    return replace(answer, evidence=evidence, warnings=unvalued(answer.warnings))


def _runs(store: Store, run_ids: Sequence[str]) -> list[str]:
    with store.catalog.read() as session:
        return session.runs.stored(run_ids)


def _jobs(store: Store, job_ids: Sequence[str]) -> set[tuple[str | None, str]]:
    return {(job.system, job.job_id) for jobs in store.jobs.all_named(job_ids).values() for job in jobs}


@contextmanager
def hints_seen(store: Store) -> Iterator[None]:
    """Within, an error about an unknown workload suggests those alone that the store shows."""
    try:
        yield
    except NothingKnownError as error:
        if store.rule.sees_all:
            raise
        with store.catalog.read() as session:
            workloads = session.runs.workloads()
        raise NothingKnownError(error.workload, error.outcome, workloads) from None
