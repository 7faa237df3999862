"""The desk where trials are handed out under leases and their outcomes taken in.

Every call is one transaction that first locks the study, so two who ask at once never get the same trial. A lease runs
on the server's clock. Once it has run out, the trial goes to the next who asks, before anything new; the outcome of
whoever held it is still taken as long as nobody else has the trial.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from crosswind.data.catalog.catalog import Catalog, Session
from crosswind.data.catalog.leases import TrialRecord
from crosswind.data.catalog.requests import RequestKey
from crosswind.data.errors import ConflictError, InvalidInputError
from crosswind.data.run import new_ulid
from crosswind.data.trial import ENDED, Study, Trial, TrialState
from crosswind.models.tuner.gaussian_process_tuner import GaussianProcessTuner
from crosswind.models.tuner.space import Space
from crosswind.models.tuner.tuner import Tuner

COUNT_MAX = 100
LEASE_SECONDS_MAX = 30 * 24 * 3600.0
TRIALS_MAX = 5_000  # of a study; the tuner answers within seconds up to there, and others wait for it
FREE = frozenset({TrialState.WAITING, TrialState.RELEASED})
HELD = frozenset({TrialState.LEASED})
OPEN = HELD | FREE
NANOSECONDS = 1_000_000_000


@dataclass(frozen=True)
class Lease:
    """Who wants to evaluate trials, and for how long the right to do so holds without a heartbeat."""

    owner: str
    seconds: float

    def __post_init__(self) -> None:
        if not 1 <= len(self.owner) <= 200:
            raise InvalidInputError(f"owner {self.owner[:40]!r}: expected 1 to 200 characters")
        if not 0 < self.seconds <= LEASE_SECONDS_MAX:
            raise InvalidInputError(
                f"lease_seconds is {self.seconds}, expected a positive number up to {LEASE_SECONDS_MAX}"
            )


@dataclass(frozen=True)
class Standing:
    """How far a study is: its trials by state, and the best one so far."""

    study: Study
    counts: Mapping[TrialState, int]
    best: TrialRecord | None


class StudyDesk:
    """Hands out the trials of studies and takes their outcomes."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        make_tuner: Callable[[Space, int], Tuner] = GaussianProcessTuner,
        clock: Callable[[], int] = time.time_ns,
        trials_max: int = TRIALS_MAX,
    ) -> None:
        self._catalog = catalog
        self._make_tuner = make_tuner
        self._clock = clock
        self._trials_max = trials_max

    def create(self, study: Study, *, request: RequestKey | None = None) -> Study:
        """Stores a new study; the same request again gets the study that it made before.

        Raises: InvalidInputError for a space that is none, ConflictError when the name is taken.
        """
        Space.from_json(study.space)
        with self._catalog.write() as session:
            made = session.requests.claim(request, self._clock()) if request else None
            if made:
                return session.studies.get(made[0])
            session.studies.add(study)
            _settle(session, request, [study.study_id])
        return study

    def suggest(self, study: str, count: int, lease: Lease, *, request: RequestKey | None = None) -> list[TrialRecord]:
        """Up to `count` trials for the lease's owner; fewer, or none, where the space has no more.

        Trials given back or whose lease ran out come first. The same request again gets the same trials, as they now
        stand. Raises: NotFoundError, InvalidInputError.
        """
        if not 1 <= count <= COUNT_MAX:
            raise InvalidInputError(f"count is {count}, expected 1 to {COUNT_MAX}")
        with self._catalog.write() as session:
            found = session.leases.lock(study)
            made = session.requests.claim(request, self._clock()) if request else None
            if made is None:
                made = self._hand_out(session, found, count, lease)
                _settle(session, request, made)
            return [session.leases.record(found.study_id, trial_id) for trial_id in made]

    def heartbeat(self, study: str, trial_id: str, lease: Lease) -> TrialRecord:
        """Lets the lease run anew from now. Raises: NotFoundError, ConflictError when the owner does not hold it."""
        with self._trial(study, trial_id, lease.owner) as (session, record):
            _expect(record, HELD)
            expires_ns = self._expiry(lease)
            session.studies.change_trial(trial_id, TrialState.LEASED, lease_expires_ns=expires_ns)
            return session.leases.record(record.study_id, trial_id)

    def release(self, study: str, trial_id: str, *, owner: str | None = None) -> TrialRecord:
        """Gives a trial back unmeasured; the next who asks gets it. Raises: NotFoundError, ConflictError."""
        with self._trial(study, trial_id, owner) as (session, record):
            _expect(record, OPEN)
            return _changed(session, record, TrialState.RELEASED)

    def complete(
        self, study: str, trial_id: str, objective: float, *, owner: str | None = None, run_id: str | None = None
    ) -> TrialRecord:
        """Takes the measured objective, lower is better; the same value again changes nothing.

        Raises: NotFoundError; InvalidInputError for a number that is not finite; ConflictError when another value is
        stored, the trial ended otherwise, or another owner holds it.
        """
        if not math.isfinite(objective):
            raise InvalidInputError(f"objective is {objective}, expected a finite number")
        with self._trial(study, trial_id, owner) as (session, record):
            if record.trial.state is TrialState.DONE:
                if record.trial.objective == objective:
                    return record
                raise ConflictError(
                    f"trial {trial_id} is done with objective {record.trial.objective}, expected that again, "
                    f"not {objective}"
                )
            _expect(record, OPEN | {TrialState.DONE})
            return _changed(session, record, TrialState.DONE, objective=objective, run_id=run_id)

    def fail(
        self, study: str, trial_id: str, reason: str, *, state: TrialState = TrialState.FAILED, owner: str | None = None
    ) -> TrialRecord:
        """Ends a trial without an objective: failed, infeasible or pruned; the same state again changes nothing.

        Raises: NotFoundError; InvalidInputError for another state; ConflictError when the trial ended otherwise, or
        another owner holds it.
        """
        endings = ENDED - {TrialState.DONE}
        if state not in endings:
            raise InvalidInputError(f"state is {state}, expected {_names(endings)}")
        with self._trial(study, trial_id, owner) as (session, record):
            if record.trial.state is state:
                return record
            _expect(record, OPEN | {state})
            return _changed(session, record, state, reason=reason)

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
            records = session.leases.records(found.study_id)
        counts = Counter(record.trial.state for record in records)
        return Standing(found, {state: counts[state] for state in TrialState}, best_of(records))

    def best(self, study: str) -> Trial | None:
        """The complete trial of the smallest objective, the earliest of equals; None before the first one.

        Raises: NotFoundError.
        """
        record = self.standing(study).best
        return record.trial if record else None

    def _hand_out(self, session: Session, study: Study, count: int, lease: Lease) -> tuple[str, ...]:
        for trial in session.studies.expired(study.study_id, self._clock()):
            session.studies.change_trial(trial.trial_id, TrialState.RELEASED, lease_expires_ns=None)
        free = [trial.trial_id for trial in session.studies.trials(study.study_id) if trial.state in FREE][:count]
        expires_ns = self._expiry(lease)
        for trial_id in free:
            session.studies.change_trial(trial_id, TrialState.LEASED, owner=lease.owner, lease_expires_ns=expires_ns)
        new = self._new(session, study, count - len(free))
        expires_ns = self._expiry(lease)  # the tuner took its time
        for trial in new:
            session.studies.add_trial(study.study_id, trial, owner=lease.owner, lease_expires_ns=expires_ns)
        return (*free, *(trial.trial_id for trial in new))

    def _new(self, session: Session, study: Study, count: int) -> list[Trial]:
        if count == 0:
            return []
        known = session.studies.trials(study.study_id)
        if len(known) + count > self._trials_max:
            expected = f"expected at most {self._trials_max}"
            raise InvalidInputError(f"study {study.name!r} has {len(known)} trials, {expected}")
        tuner = self._make_tuner(Space.from_json(study.space), study.seed)
        tuner.observe(known)
        return [Trial(chosen, TrialState.LEASED, trial_id=new_ulid()) for chosen in tuner.suggest(count)]

    def _expiry(self, lease: Lease) -> int:
        return self._clock() + round(lease.seconds * NANOSECONDS)

    @contextmanager
    def _trial(self, study: str, trial_id: str, owner: str | None) -> Iterator[tuple[Session, TrialRecord]]:
        """The trial in a session that holds the study, unless someone else than the owner has the lease."""
        with self._catalog.write() as session:
            record = session.leases.record(session.leases.lock(study).study_id, trial_id)
            if record.trial.state is TrialState.LEASED and owner is not None and owner != record.owner:
                raise ConflictError(f"trial {trial_id} is leased by {record.owner!r}, not by {owner!r}")
            yield session, record


def best_of(records: Sequence[TrialRecord]) -> TrialRecord | None:
    """The complete trial of the smallest objective, the first of equals; None without one."""
    done = [(record.trial.objective, i) for i, record in enumerate(records) if record.trial.objective is not None]
    return records[min(done)[1]] if done else None


def _settle(session: Session, request: RequestKey | None, made: Sequence[str]) -> None:
    if request:
        session.requests.settle(request, made)


def _changed(session: Session, record: TrialRecord, state: TrialState, **values: object) -> TrialRecord:
    session.studies.change_trial(record.trial.trial_id, state, lease_expires_ns=None, **values)
    return session.leases.record(record.study_id, record.trial.trial_id)


def _expect(record: TrialRecord, states: Collection[TrialState]) -> None:
    if record.trial.state not in states:
        raise ConflictError(f"trial {record.trial.trial_id} is {record.trial.state}, expected {_names(states)}")


def _names(states: Collection[TrialState]) -> str:
    return " or ".join(sorted(states))
