"""The service over the catalog's database.

Every change of a trial is one transaction that first locks the study, so two who ask at once never get the same trial.
What is new is thought out before the lock is taken, since a database such as SQLite has one writer, who must not wait
for a tuner: see `Plan`. A lease runs on the server's clock. Once it has run out, the trial goes to the next who asks,
before anything new; the outcome of whoever held it is still taken as long as nobody else has the trial.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

from crosswind.data.catalog.catalog import Catalog, Session
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.run import new_ulid
from crosswind.data.schema.trial import ENDED, Configuration, Study, Trial, TrialRecord, TrialState
from crosswind.models.tuner.search.search import MakeTuner
from crosswind.models.tuner.search.search_cache import FindEarlier, KeptSearch, SearchCache, nothing_earlier
from crosswind.models.tuner.service import rules
from crosswind.models.tuner.service.service import (
    HELD,
    LIMITS,
    OPEN,
    DeadJobs,
    Lease,
    Limits,
    StudyStatus,
    nobody,
)


@dataclass(frozen=True)
class Ask:
    """A request for `count` trials under a lease; `dead` are jobs that are known to have ended."""

    count: int
    lease: Lease
    request: RequestKey | None
    dead: Collection[str]


@dataclass(frozen=True)
class Plan:
    """`count` new configurations, thought out while the study had `n_trials` trials; fewer where the space has no more.

    It holds as long as nobody else, in another process, begins a trial before the study is locked.
    """

    n_trials: int
    count: int
    configurations: Sequence[Configuration]
    search: KeptSearch | None

    def suffices(self, n_trials: int, count: int) -> bool:
        """Return whether so many can be begun as planned."""
        return n_trials == self.n_trials and count <= self.count


class _OvertakenError(Exception):
    """Others got the trials that were to be handed out again, and nothing new was thought out."""


class CatalogStudyService:
    """The `StudyService` whose studies are in a catalog, SQLite or PostgreSQL; for several threads.

    It keeps the searches of the studies asked last (`search_cache`): one service serves all requests. `find_earlier`
    looks up what a study starts from; `make_tuner` names another tuner, which starts cold and aims at one objective.
    """

    def __init__(  # noqa: PLR0913 - keywords
        self,
        catalog: Catalog,
        *,
        make_tuner: MakeTuner | None = None,
        find_earlier: FindEarlier = nothing_earlier,
        clock: Callable[[], int] = time.time_ns,
        limits: Limits = LIMITS,
        dead_jobs: DeadJobs = nobody,
    ) -> None:
        self._catalog = catalog
        self._searches = SearchCache.by(make_tuner, find_earlier)
        self._clock = clock
        self._limits = limits
        self._dead_jobs = dead_jobs

    def choosing(self, make_tuner: MakeTuner) -> "CatalogStudyService":
        """A service over the same studies that asks this tuner, which starts from nothing."""
        return CatalogStudyService(
            self._catalog,
            make_tuner=make_tuner,
            clock=self._clock,
            limits=self._limits,
            dead_jobs=self._dead_jobs,
        )

    def create(self, study: Study, *, request: RequestKey | None = None) -> Study:
        """Stores a new study."""
        rules.check_study(study)
        with self._catalog.write() as session:
            made = session.requests.claim(request, self._clock()) if request else None
            if made:
                return session.studies.get(made[0])
            session.studies.add(study)
            _settle(session, request, [study.study_id])
        return study

    def suggest(self, study: str, count: int, lease: Lease, *, request: RequestKey | None = None) -> list[TrialRecord]:
        """Up to `count` trials for the lease's owner."""
        rules.check_count(count)
        ask = Ask(count, lease, request, self._dead(study))
        with self._catalog.read() as session:
            stored = session.studies.get(study)
            unended = session.leases.records(stored.study_id, OPEN)
            wanted = self._wanted(stored, unended, session.leases.count(stored.study_id), ask)
        try:
            return self._asked(stored, ask, self._searches.of(stored) if wanted else None)
        except _OvertakenError:
            return self._asked(stored, ask, self._searches.of(stored))

    def heartbeat(self, study: str, trial_id: str, lease: Lease) -> TrialRecord:
        """Lets the lease run anew from now."""
        expires_ns = self._expiry(lease)
        return self._change(study, trial_id, lambda record: rules.beaten(record, lease, expires_ns))

    def release(
        self, study: str, trial_id: str, *, owner: str | None = None, checkpoint: str | None = None
    ) -> TrialRecord:
        """Gives a trial back unmeasured."""
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
        """Takes what was measured."""
        return self._change(
            study,
            trial_id,
            lambda record: rules.completed(record, objective, owner=owner, run_id=run_id, outcomes=outcomes),
        )

    def fail(
        self, study: str, trial_id: str, reason: str, *, state: TrialState = TrialState.FAILED, owner: str | None = None
    ) -> TrialRecord:
        """Ends a trial without an objective."""
        return self._change(study, trial_id, lambda record: rules.failed(record, reason, state=state, owner=owner))

    def trials(self, study: str) -> list[TrialRecord]:
        """The study's trials, oldest first."""
        with self._catalog.read() as session:
            return session.leases.records(session.studies.get(study).study_id)

    def trial(self, study: str, trial_id: str) -> TrialRecord:
        """One trial."""
        with self._catalog.read() as session:
            return session.leases.record(session.studies.get(study).study_id, trial_id)

    def status(self, study: str) -> StudyStatus:
        """Return how far the study is."""
        with self._catalog.read() as session:
            stored = session.studies.get(study)
            return rules.status_of(stored, session.leases.records(stored.study_id), self._clock)

    def best(self, study: str) -> Trial | None:
        """The best complete trial so far."""
        record = self.status(study).best
        return record.trial if record else None

    def _dead(self, study: str) -> Collection[str]:
        """Jobs that hold trials and are known to have ended; asked before the study is locked, as it may take time."""
        if self._dead_jobs is nobody:
            return ()
        held = {record.job for record in self.trials(study) if record.trial.state in HELD and record.job}
        return self._dead_jobs(held) if held else ()

    def _wanted(self, study: Study, records: Sequence[TrialRecord], n_trials: int, ask: Ask) -> int:
        """Return how many new trials it would take beside those that are handed out again."""
        now_ns = self._clock()
        if rules.is_over(study, now_ns):
            return 0
        most = self._limits.trials if study.trials_max is None else study.trials_max
        again = rules.to_hand_out(records, ask.lease, now_ns, ask.dead)
        return max(min(ask.count - len(again), most - n_trials), 0)

    def _asked(self, study: Study, ask: Ask, search: KeptSearch | None) -> list[TrialRecord]:
        """Thinks, and hands out; threads that want something new of one study come one after the other."""
        with search.lock if search else nullcontext():
            plan = self._plan(study, ask, search)
            with self._catalog.write() as session:
                locked = session.leases.lock(study.study_id)
                made = session.requests.claim(ask.request, self._clock()) if ask.request else None
                if made is None:
                    made = self._hand_out(session, locked, ask, plan)
                    _settle(session, ask.request, made)
                return [session.leases.record(locked.study_id, trial_id) for trial_id in made]

    def _plan(self, study: Study, ask: Ask, search: KeptSearch | None) -> Plan:
        if search is None:
            return Plan(0, 0, (), None)
        with self._catalog.read() as session:
            records = session.leases.records(study.study_id)
        wanted = self._wanted(study, records, len(records), ask)
        again = {record.trial.trial_id for record in rules.to_hand_out(records, ask.lease, self._clock(), ask.dead)}
        held = [_held(record) if record.trial.trial_id in again else record for record in records]
        return Plan(len(records), wanted, search.proposed(held, wanted) if wanted else (), search)

    def _hand_out(self, session: Session, study: Study, ask: Ask, plan: Plan) -> tuple[str, ...]:
        if rules.is_over(study, self._clock()):
            return ()
        records = session.leases.records(study.study_id, OPEN)
        made: list[TrialRecord] = []
        for record in rules.to_hand_out(records, ask.lease, self._clock(), ask.dead):
            if len(made) == ask.count:
                break
            handed = rules.leased(record, ask.lease, self._expiry(ask.lease), self._limits.losses)
            session.leases.change(handed)
            if handed.trial.state not in ENDED:
                made.append(handed)
        new = [
            Trial(chosen, TrialState.LEASED, trial_id=new_ulid())
            for chosen in self._new(session, study, ask.count - len(made), plan)
        ]
        expires_ns = self._expiry(ask.lease)
        for trial in new:
            session.studies.add_trial(
                study.study_id, trial, owner=ask.lease.owner, lease_expires_ns=expires_ns, job=ask.lease.job
            )
        return (*(record.trial.trial_id for record in made), *(trial.trial_id for trial in new))

    def _new(self, session: Session, study: Study, count: int, plan: Plan) -> Sequence[Configuration]:
        """Configurations to begin: the planned ones, or others that are thought out with the study locked."""
        n_trials = session.leases.count(study.study_id) if count else 0
        allowed = rules.room(study, n_trials, count, self._limits.trials) if count else 0
        if allowed == 0:
            return []
        if plan.suffices(n_trials, allowed):
            return plan.configurations[:allowed]
        if plan.search is None:
            raise _OvertakenError
        return plan.search.proposed(session.leases.records(study.study_id), allowed)

    def _expiry(self, lease: Lease) -> int:
        return self._clock() + lease.nanoseconds

    def _change(self, study: str, trial_id: str, rule: Callable[[TrialRecord], TrialRecord]) -> TrialRecord:
        """Change the trial by the rule, while nobody else gets at the study, and return it as stored."""
        with self._held(study, trial_id) as (session, record):
            changed = rule(record)
            if changed != record:
                session.leases.change(changed)
            return session.leases.record(record.study_id, trial_id)

    @contextmanager
    def _held(self, study: str, trial_id: str) -> Iterator[tuple[Session, TrialRecord]]:
        with self._catalog.write() as session:
            yield session, session.leases.record(session.leases.lock(study).study_id, trial_id)


def _held(record: TrialRecord) -> TrialRecord:
    """A trial that is about to be handed out again, as a tuner must see it: its configuration is not free."""
    return replace(record, trial=replace(record.trial, state=TrialState.LEASED))


def _settle(session: Session, request: RequestKey | None, made: Sequence[str]) -> None:
    if request:
        session.requests.settle(request, made)
