"""The desk over the catalog's database.

Every call is one transaction that first locks the study, so two who ask at once never get the same trial. A lease runs
on the server's clock. Once it has run out, the trial goes to the next who asks, before anything new; the outcome of
whoever held it is still taken as long as nobody else has the trial.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from crosswind.data.catalog.catalog import Catalog, Session
from crosswind.data.catalog.requests import RequestKey
from crosswind.data.run import new_ulid
from crosswind.data.trial import ENDED, Study, Trial, TrialRecord, TrialState
from crosswind.models.tuner import rules
from crosswind.models.tuner.desks import (
    COUNT_MAX,
    HELD,
    LEASE_SECONDS_MAX,
    LIMITS,
    TRIALS_MAX,
    DeadJobs,
    Lease,
    Limits,
    Standing,
    best_of,
    nobody,
)
from crosswind.models.tuner.searching import searching
from crosswind.models.tuner.space import Space
from crosswind.models.tuner.tuner import Tuner

__all__ = ["COUNT_MAX", "LEASE_SECONDS_MAX", "TRIALS_MAX", "Lease", "Limits", "Standing", "StudyDesk", "best_of"]


class StudyDesk:
    """The `Desk` whose studies are in a catalog, SQLite or PostgreSQL."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        make_tuner: Callable[[Space, int], Tuner] = searching,
        clock: Callable[[], int] = time.time_ns,
        limits: Limits = LIMITS,
        dead_jobs: DeadJobs = nobody,
    ) -> None:
        self._catalog = catalog
        self._make_tuner = make_tuner
        self._clock = clock
        self._limits = limits
        self._dead_jobs = dead_jobs

    def create(self, study: Study, *, request: RequestKey | None = None) -> Study:
        """Stores a new study; the same request again gets the study that it made before.

        Raises: InvalidInputError for a space or budget that is none, ConflictError when the name is taken.
        """
        rules.check_study(study)
        with self._catalog.write() as session:
            made = session.requests.claim(request, self._clock()) if request else None
            if made:
                return session.studies.get(made[0])
            session.studies.add(study)
            _settle(session, request, [study.study_id])
        return study

    def suggest(self, study: str, count: int, lease: Lease, *, request: RequestKey | None = None) -> list[TrialRecord]:
        """Up to `count` trials for the lease's owner; fewer, or none, where the space or the budget has no more.

        The same request again gets the same trials, as they now stand. Raises: NotFoundError, InvalidInputError.
        """
        rules.check_count(count)
        dead = self._dead(study)
        with self._catalog.write() as session:
            found = session.leases.lock(study)
            made = session.requests.claim(request, self._clock()) if request else None
            if made is None:
                made = self._hand_out(session, found, count, lease, dead=dead)
                _settle(session, request, made)
            return [session.leases.record(found.study_id, trial_id) for trial_id in made]

    def heartbeat(self, study: str, trial_id: str, lease: Lease) -> TrialRecord:
        """Lets the lease run anew from now. Raises: NotFoundError, ConflictError when the owner does not hold it."""
        expires_ns = self._expiry(lease)
        return self._change(study, trial_id, lambda record: rules.beaten(record, lease, expires_ns))

    def release(
        self, study: str, trial_id: str, *, owner: str | None = None, checkpoint: str | None = None
    ) -> TrialRecord:
        """Gives a trial back unmeasured; the next who asks gets it. Raises: NotFoundError, ConflictError."""
        return self._change(study, trial_id, lambda record: rules.released(record, owner=owner, checkpoint=checkpoint))

    def complete(  # noqa: PLR0913 - as the protocol has it
        self,
        study: str,
        trial_id: str,
        objective: float,
        *,
        owner: str | None = None,
        run_id: str | None = None,
        outcomes: Mapping[str, float] | None = None,
    ) -> TrialRecord:
        """Takes the measured objective, lower is better, and what else was measured; the same again changes nothing.

        Raises: NotFoundError; InvalidInputError for a number that is not finite; ConflictError when another value is
        stored, the trial ended otherwise, or another owner holds it.
        """
        return self._change(
            study,
            trial_id,
            lambda record: rules.completed(record, objective, owner=owner, run_id=run_id, outcomes=outcomes),
        )

    def fail(
        self, study: str, trial_id: str, reason: str, *, state: TrialState = TrialState.FAILED, owner: str | None = None
    ) -> TrialRecord:
        """Ends a trial without an objective: failed, infeasible or pruned; the same state again changes nothing.

        Raises: NotFoundError; InvalidInputError for another state; ConflictError when the trial ended otherwise, or
        another owner holds it.
        """
        return self._change(study, trial_id, lambda record: rules.failed(record, reason, state=state, owner=owner))

    def trials(self, study: str) -> list[TrialRecord]:
        """The study's trials, oldest first. Raises: NotFoundError."""
        with self._catalog.read() as session:
            return session.leases.records(session.studies.get(study).study_id)

    def trial(self, study: str, trial_id: str) -> TrialRecord:
        """One trial. Raises: NotFoundError."""
        with self._catalog.read() as session:
            return session.leases.record(session.studies.get(study).study_id, trial_id)

    def standing(self, study: str) -> Standing:
        """How far the study is. Raises: NotFoundError."""
        with self._catalog.read() as session:
            found = session.studies.get(study)
            return rules.standing_of(found, session.leases.records(found.study_id))

    def best(self, study: str) -> Trial | None:
        """The complete trial of the smallest objective, the earliest of equals; None before the first one.

        Raises: NotFoundError.
        """
        record = self.standing(study).best
        return record.trial if record else None

    def _dead(self, study: str) -> Collection[str]:
        """Jobs that hold trials and are known to have ended; asked before the study is locked, as it may take time."""
        if self._dead_jobs is nobody:
            return ()
        held = {record.job for record in self.trials(study) if record.trial.state in HELD and record.job}
        return self._dead_jobs(held) if held else ()

    def _hand_out(
        self, session: Session, study: Study, count: int, lease: Lease, *, dead: Collection[str]
    ) -> tuple[str, ...]:
        records = session.leases.records(study.study_id)
        made: list[TrialRecord] = []
        for record in rules.to_hand_out(records, lease, self._clock(), dead):
            if len(made) == count:
                break
            handed = rules.leased(record, lease, self._expiry(lease), self._limits.losses)
            session.leases.change(handed)
            if handed.trial.state not in ENDED:
                made.append(handed)
        new = self._new(session, study, count - len(made))
        expires_ns = self._expiry(lease)  # the tuner took its time
        for trial in new:
            session.studies.add_trial(
                study.study_id, trial, owner=lease.owner, lease_expires_ns=expires_ns, job=lease.job
            )
        return (*(record.trial.trial_id for record in made), *(trial.trial_id for trial in new))

    def _new(self, session: Session, study: Study, count: int) -> list[Trial]:
        known = session.studies.trials(study.study_id) if count else []
        allowed = rules.room(study, len(known), count, self._limits.trials) if count else 0
        if allowed == 0:
            return []
        tuner = self._make_tuner(Space.from_json(study.space), study.seed)
        tuner.observe(known)
        return [Trial(chosen, TrialState.LEASED, trial_id=new_ulid()) for chosen in tuner.suggest(allowed)]

    def _expiry(self, lease: Lease) -> int:
        return self._clock() + lease.nanoseconds

    def _change(self, study: str, trial_id: str, rule: Callable[[TrialRecord], TrialRecord]) -> TrialRecord:
        """What the rule makes of the trial, stored, while nobody else gets at the study."""
        with self._held(study, trial_id) as (session, record):
            changed = rule(record)
            if changed != record:
                session.leases.change(changed)
            return session.leases.record(record.study_id, trial_id)

    @contextmanager
    def _held(self, study: str, trial_id: str) -> Iterator[tuple[Session, TrialRecord]]:
        with self._catalog.write() as session:
            yield session, session.leases.record(session.leases.lock(study).study_id, trial_id)


def _settle(session: Session, request: RequestKey | None, made: Sequence[str]) -> None:
    if request:
        session.requests.settle(request, made)
