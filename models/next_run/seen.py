"""Predictions as somebody may see them who may not see every run that was fitted."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from crosswind.data.schema.access import RowRule
from crosswind.data.schema.answers.predictions import EvidenceRun, Outcome, RunPrediction
from crosswind.data.store.store import Store
from crosswind.models.next_run.unknown import NothingKnownError, unvalued

KEPT_MAX = 10_000


class PredictionsSeen:
    """Cuts predictions to the runs that a store shows; those are looked up again after `fresh_seconds`.

    Predictions of one cohort rest on the same runs, so that frequent questions cost no query. `clock` returns seconds.
    """

    def __init__(self, fresh_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._fresh_seconds = fresh_seconds
        self._clock = clock
        self._kept: dict[tuple[RowRule, tuple[EvidenceRun, ...]], tuple[float, tuple[EvidenceRun, ...]]] = {}

    def __call__(self, store: Store, answer: RunPrediction) -> RunPrediction:
        """Return a prediction that names those runs alone that the store shows; the others count, unnamed."""
        if store.rule.sees_all:
            return answer
        return self.at_once(store, answer) or self._looked_up(store, answer)

    def at_once(self, store: Store, answer: RunPrediction) -> RunPrediction | None:
        """Return the same without reading the store; None where its runs were not looked up a moment ago."""
        if store.rule.sees_all:
            return answer
        looked_up, evidence = self._kept.get((store.rule, answer.evidence), (-1e9, ()))
        return None if self._clock() - looked_up > self._fresh_seconds else _cut(answer, evidence)

    @contextmanager
    def hints(self, store: Store) -> Iterator[None]:
        """Within, an error about an unknown workload suggests those alone that the store shows."""
        try:
            yield
        except NothingKnownError as error:
            if store.rule.sees_all:
                raise
            with store.catalog.read() as session:
                workloads = session.runs.workloads()
            raise NothingKnownError(error.workload, error.outcome, workloads) from None

    def _looked_up(self, store: Store, answer: RunPrediction) -> RunPrediction:
        if len(self._kept) >= KEPT_MAX:
            self._kept.clear()
        evidence = _seen(store, answer)
        self._kept[store.rule, answer.evidence] = self._clock(), evidence
        return _cut(answer, evidence)


def _cut(answer: RunPrediction, evidence: tuple[EvidenceRun, ...]) -> RunPrediction:
    return replace(answer, evidence=evidence, warnings=unvalued(answer.warnings))


def _seen(store: Store, answer: RunPrediction) -> tuple[EvidenceRun, ...]:
    ids = [run.run_id for run in answer.evidence]
    seen = _jobs(store, ids) if answer.outcome == Outcome.JOB else {(None, run_id) for run_id in _runs(store, ids)}
    return tuple(run for run in answer.evidence if {(None, run.run_id), (run.system, run.run_id)} & seen)


def _runs(store: Store, run_ids: Sequence[str]) -> list[str]:
    with store.catalog.read() as session:
        return session.runs.stored(run_ids)


def _jobs(store: Store, job_ids: Sequence[str]) -> set[tuple[str | None, str]]:
    return {(job.system, job.job_id) for jobs in store.jobs.all_named(job_ids).values() for job in jobs}
