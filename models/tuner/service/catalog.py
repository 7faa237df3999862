"""The study service over the catalog's database.

Every change of a trial is one transaction that locks the study first, so two requests at once never get the same trial.
New configurations are computed before the lock is taken, since a database such as SQLite has one writer, who must not
wait for a tuner: see `Plan`. A lease runs on the database's clock. Once it has run out, the trial goes to the next
request, before anything new; the outcome that its last holder sends is still taken as long as nobody else has it.
"""

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

from crosswind.data.catalog.catalog import Catalog, Session
from crosswind.data.schema.answers.studies import StudySources
from crosswind.data.schema.part import Part
from crosswind.data.schema.report import Report
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.run import new_ulid
from crosswind.data.schema.trial import ENDED, Configuration, Study, StudyState, TrialRecord, TrialState
from crosswind.models.tuner.search.search import MakeTuner
from crosswind.models.tuner.search.search_cache import CachedSearch, FindPriorStudies, SearchCache, no_prior_studies
from crosswind.models.tuner.service import life, rules
from crosswind.models.tuner.service.changes import Rule, TrialChanges
from crosswind.models.tuner.service.life import Begun
from crosswind.models.tuner.service.rules import SuggestRequest
from crosswind.models.tuner.service.service import (
    HELD,
    LIMITS,
    OPEN,
    DeadJobs,
    Lease,
    Limits,
    StudyStatus,
    no_dead_jobs,
)
from crosswind.models.tuner.study.stop_rules import Peer, Progress, reason_to_stop


@dataclass(frozen=True)
class Plan:
    """`count` new configurations for a study of `n_trials` trials; fewer where the space has no more.

    It holds unless another process begins a trial before the study is locked.
    """

    n_trials: int
    count: int
    configurations: Sequence[Configuration]
    search: CachedSearch | None

    def suffices(self, n_trials: int, count: int) -> bool:
        """Return whether so many can be begun as planned."""
        return n_trials == self.n_trials and count <= self.count


EVERY = Part(2**31, by="created_ns", descending=True)
NO_PLAN = Plan(0, 0, (), None)


class _OvertakenError(Exception):
    """Others got the trials that were available, and there is no plan for new ones."""


class CatalogStudyService(TrialChanges):
    """The `StudyService` whose studies are in a catalog, SQLite or PostgreSQL; for several threads.

    Args:
        catalog: Keeps studies and trials.
        make_tuner: A tuner in place of the usual one; it gets no prior studies and aims at one objective.
        find_prior_studies: Looks up the sources of a study.
        clock: Nanoseconds since 1970; by default the catalog's.
        limits: Bounds of every study.
        dead_jobs: Looks up which batch jobs have ended.

    Example:
        >>> service = CatalogStudyService(store.catalog, find_prior_studies=StoredPriorStudies(store))
        >>> study = service.create(Study("s1", "threads", space, "step_p50_seconds", "s", seed=0, created_ns=0))
        >>> [record] = service.suggest("threads", 1, Lease("alice", seconds=3600))
        >>> service.complete("threads", record.trial_id, objective=0.25, owner="alice")
    """

    def __init__(  # noqa: PLR0913 - keywords
        self,
        catalog: Catalog,
        *,
        make_tuner: MakeTuner | None = None,
        find_prior_studies: FindPriorStudies = no_prior_studies,
        clock: Callable[[], int] | None = None,
        limits: Limits = LIMITS,
        dead_jobs: DeadJobs = no_dead_jobs,
    ) -> None:
        self._catalog = catalog
        self._search_cache = SearchCache.of_tuner(make_tuner, find_prior_studies)
        self._find_for_new: FindPriorStudies | None = None
        self._clock = clock or catalog.clock
        self._limits = limits
        self._dead_jobs = dead_jobs

    def seen_by(self, catalog: Catalog, find_prior_studies: FindPriorStudies) -> "CatalogStudyService":
        """Return a service for somebody else over the studies of the same catalog; it has the same searches.

        Studies that they create say what they learn from as `find_prior_studies` sees it.
        """
        service = copy.copy(self)
        service._catalog, service._find_for_new = catalog, find_prior_studies
        return service

    def with_tuner(self, make_tuner: MakeTuner) -> "CatalogStudyService":
        """Return a service over the same studies whose new trials come from this tuner."""
        return CatalogStudyService(
            self._catalog, make_tuner=make_tuner, clock=self._clock, limits=self._limits, dead_jobs=self._dead_jobs
        )

    def create(self, study: Study, *, request: RequestKey | None = None) -> Study:
        """Store a new study."""
        rules.check_name(study.name)
        rules.check_study(study)
        sources = self._sources(study)
        with self._catalog.write() as session:
            made = session.requests.claim(request, self._clock()) if request else None
            if made:
                return session.studies.get(made[0])
            session.studies.add(study)
            session.studies.keep_sources(study.study_id, sources)
            _add_waiting(session, study, study.start)
            _settle(session, request, [study.study_id])
        return study

    def _sources(self, study: Study) -> StudySources:
        """Return what a new study's search will learn from.

        Raises: InvalidInputError for a source that is not there.
        """
        if study.sources:
            with self._catalog.read() as session:
                rules.check_sources(study, session.studies.all())
        return self._search_cache.report(study, self._find_for_new)

    def extend(
        self, study: str, *, trials: int | None = None, hours: float | None = None, request: RequestKey | None = None
    ) -> Study:
        """Add to the budget."""

        def rule(stored: Study, _: Sequence[TrialRecord]) -> Study:
            changed = life.extended(stored, trials=trials, hours=hours, now_ns=self._clock())
            rules.check_study(changed)
            return changed

        return self._change_study(study, rule, request)

    def change_state(self, study: str, state: StudyState, request: RequestKey | None) -> Study:
        """Change the study's state."""
        return self._change_study(study, lambda stored, _: life.in_state(stored, state), request)

    def rename(self, study: str, name: str, *, force: bool = False, request: RequestKey | None = None) -> Study:
        """Give the study another name."""

        def rule(stored: Study, records: Sequence[TrialRecord]) -> Study:
            if not force:
                life.expect_no_lease(stored, records, self._clock())
            return replace(stored, name=name)

        rules.check_name(name)
        return self._change_study(study, rule, request)

    def delete(self, study: str, *, force: bool = False, request: RequestKey | None = None) -> None:
        """Remove the study with its trials."""
        with self._catalog.write() as session:
            if request and session.requests.claim(request, self._clock()):
                return
            stored = session.studies.lock_own(study)
            if not force:
                life.expect_no_lease(stored, session.leases.records(stored.study_id, HELD), self._clock())
            session.reports.remove(stored.study_id)
            session.leases.remove(stored.study_id)
            session.studies.remove(stored.study_id)
            _settle(session, request, [stored.study_id])

    def enqueue(
        self, study: str, configurations: Sequence[Configuration], *, request: RequestKey | None = None
    ) -> list[TrialRecord]:
        """Store trials that wait for an owner."""
        with self._catalog.write() as session:
            locked = session.studies.lock(study)
            trial_ids = session.requests.claim(request, self._clock()) if request else None
            if trial_ids is None:
                records = session.leases.records(locked.study_id)
                places = life.queued(locked, records, configurations, now_ns=self._clock())
                new = [wanted for wanted, place in zip(configurations, places, strict=True) if place is None]
                made = iter(_add_waiting(session, locked, new))
                trial_ids = tuple(place.trial_id if place else next(made) for place in places)
                _settle(session, request, trial_ids)
            return [session.leases.record(locked.study_id, trial_id) for trial_id in trial_ids]

    def studies(self, part: Part = EVERY) -> list[StudyStatus]:
        """Return how far every study is, the newest first; or a part of them in its order."""
        with self._catalog.read() as session:
            return [self._status(session, study, looks_ahead=False) for study in session.studies.part(part)]

    def suggest(self, study: str, count: int, lease: Lease, *, request: RequestKey | None = None) -> list[TrialRecord]:
        """Return up to `count` trials for the lease's owner."""
        wanted = SuggestRequest(count, lease, request)
        with self._catalog.read() as session:
            stored = session.studies.get(study)
            records, begun = session.leases.records(stored.study_id, OPEN), _begun(session, stored)
        # Before the study is locked, as it may take time.
        wanted = replace(wanted, dead=rules.jobs_that_died(records, self._dead_jobs))
        n_new = self._n_new(stored, records, begun, wanted)
        try:
            return self._serve(stored, wanted, self._search_cache.get(stored) if n_new else None)
        except _OvertakenError:
            return self._serve(stored, wanted, self._search_cache.get(stored))

    def heartbeat(self, study: str, trial_id: str, lease: Lease) -> TrialRecord:
        """Renew the lease from now."""
        expires_ns = self._expiry(lease)
        return self.change(study, trial_id, lambda record: rules.renewed(record, lease, expires_ns))

    def define(
        self,
        study: str,
        trial_id: str,
        configuration: Configuration,
        parameters: Mapping[str, Mapping[str, object]],
        *,
        owner: str | None = None,
    ) -> TrialRecord:
        """Store the values that a trial's program asked for, and their parameters."""
        with self._catalog.write() as session:
            stored = session.studies.lock(study)
            larger = rules.grown(stored, parameters)
            record = session.leases.record(stored.study_id, trial_id)
            changed = rules.defined(record, larger, configuration, owner=owner)
            if larger != stored:
                session.studies.change(stored, larger)
            if changed != record:
                session.leases.change(record, changed)
            return changed

    def report(self, study: str, trial_id: str, reports: Sequence[Report], *, owner: str | None = None) -> str:
        """Store intermediate values; return in words why the trial should stop."""
        with self._catalog.write() as session:
            stored = session.studies.lock(study)
            record = session.leases.record(stored.study_id, trial_id)
            rules.check_reports(record, reports, session.reports.count(trial_id), owner=owner)
            session.reports.add(stored.study_id, trial_id, reports)
        with self._catalog.read() as session:
            steps = session.reports.of_trial(trial_id)
            progress = Progress.of(stored, trial_id, steps, reports)
            return reason_to_stop(
                stored.stop_early, progress, lambda step: _peers(session, stored.study_id, trial_id, step)
            )

    def reports(self, study: str) -> dict[str, list[Report]]:
        """Return what each trial has reported."""
        with self._catalog.read() as session:
            return session.reports.of_study(session.studies.get(study).study_id)

    def trials(self, study: str) -> list[TrialRecord]:
        """Return the study's trials, oldest first."""
        with self._catalog.read() as session:
            return session.leases.records(session.studies.get(study).study_id)

    def trial(self, study: str, trial_id: str) -> TrialRecord:
        """Return one trial."""
        with self._catalog.read() as session:
            return session.leases.record(session.studies.get(study).study_id, trial_id)

    def status(self, study: str) -> StudyStatus:
        """Return how far the study is."""
        with self._catalog.read() as session:
            return self._status(session, session.studies.get(study))

    def _status(self, session: Session, study: Study, *, looks_ahead: bool = True) -> StudyStatus:
        records, sources = session.leases.records(study.study_id), session.studies.sources(study.study_id)
        return rules.status_of(study, records, self._clock, sources, looks_ahead=looks_ahead)

    def change(self, study: str, trial_id: str, rule: Rule) -> TrialRecord:
        """Change the trial by the rule while the study is locked, and return it as stored."""
        with self._catalog.write() as session:
            record = session.leases.record(session.studies.lock(study).study_id, trial_id)
            changed = rule(record)
            if changed != record:
                session.leases.change(record, changed)
            return session.leases.record(record.study_id, trial_id)

    def _change_study(
        self, study: str, rule: Callable[[Study, Sequence[TrialRecord]], Study], request: RequestKey | None
    ) -> Study:
        """Change the locked study by the rule, which gets the leased trials, too; return it as stored."""
        with self._catalog.write() as session:
            made = session.requests.claim(request, self._clock()) if request else None
            if made:
                return session.studies.get(made[0])
            stored = session.studies.lock_own(study)
            changed = rule(stored, session.leases.records(stored.study_id, HELD))
            session.studies.change(stored, changed)
            _settle(session, request, [stored.study_id])
            return changed

    def _n_new(self, study: Study, records: Sequence[TrialRecord], begun: Begun, wanted: SuggestRequest) -> int:
        """Return how many new trials the request needs besides those of the records that are available."""
        now_ns = self._clock()
        if study.state is not StudyState.RUNNING or study.is_over(now_ns):
            return 0
        left = self._limits.trials - begun.trials if study.trials_max is None else study.trials_max - begun.charged
        again = rules.available(records, wanted, now_ns)
        return max(min(wanted.count - len(again), left), 0)

    def _serve(self, study: Study, wanted: SuggestRequest, search: CachedSearch | None) -> list[TrialRecord]:
        """Plan, lock, lease; threads that want something new of one study come one after the other."""
        with search.lock if search else nullcontext():
            plan = self._plan(study, wanted, search) if search else NO_PLAN
            with self._catalog.write() as session:
                locked = session.studies.lock(study.study_id)
                trial_ids = session.requests.claim(wanted.key, self._clock()) if wanted.key else None
                if trial_ids is None:
                    trial_ids = self._lease(session, locked, wanted, plan)
                    _settle(session, wanted.key, trial_ids)
                return [session.leases.record(locked.study_id, trial_id) for trial_id in trial_ids]

    def _plan(self, study: Study, wanted: SuggestRequest, search: CachedSearch) -> Plan:
        with self._catalog.read() as session:
            records = session.leases.records(study.study_id)
        count = self._n_new(study, records, Begun.of(records), wanted)
        again = {record.trial_id for record in rules.available(records, wanted, self._clock())}
        seen = [_as_leased(record) if record.trial_id in again else record for record in records]
        return Plan(len(records), count, search.suggest(seen, count) if count else (), search)

    def _lease(self, session: Session, study: Study, wanted: SuggestRequest, plan: Plan) -> tuple[str, ...]:
        """Lease available trials and new ones in the locked study; return their ids."""
        if not life.hands_out(study, self._clock()):
            return ()
        records = session.leases.records(study.study_id, OPEN)
        trial_ids: list[str] = []
        for record in rules.available(records, wanted, self._clock()):
            if len(trial_ids) == wanted.count:
                break
            leased = rules.leased(record, wanted.lease, self._expiry(wanted.lease), self._limits.losses)
            session.leases.change(record, leased)
            if leased.trial.state not in ENDED:
                trial_ids.append(leased.trial_id)
        configurations = self._configurations(session, study, wanted.count - len(trial_ids), plan)
        expires_ns, weights = self._expiry(wanted.lease), plan.search.weights if plan.search else {}
        for configuration in configurations:
            record = rules.begun(study.study_id, new_ulid(), configuration, lease=wanted.lease, expires_ns=expires_ns)
            session.leases.add(replace(record, weights=weights))
            trial_ids.append(record.trial_id)
        if plan.search and configurations and plan.search.report != session.studies.sources(study.study_id):
            session.studies.keep_sources(study.study_id, plan.search.report)
        return tuple(trial_ids)

    def _configurations(self, session: Session, study: Study, count: int, plan: Plan) -> Sequence[Configuration]:
        """Return the configurations to begin: as planned, or others, computed while the study is locked."""
        if count == 0:
            return []
        begun = _begun(session, study)
        allowed = begun.remaining(study, count, self._limits.trials)
        if allowed == 0:
            return []
        if plan.suffices(begun.trials, allowed):
            return plan.configurations[:allowed]
        if plan.search is None:
            raise _OvertakenError
        return plan.search.suggest(session.leases.records(study.study_id), allowed)

    def _expiry(self, lease: Lease) -> int:
        return self._clock() + lease.nanoseconds


def _as_leased(record: TrialRecord) -> TrialRecord:
    """Return a trial that is about to be leased as a tuner must see it: its configuration is not free."""
    return replace(record, trial=replace(record.trial, state=TrialState.LEASED))


def _peers(session: Session, study_id: str, trial_id: str, step: int) -> list[Peer]:
    others = session.reports.at_step(study_id, step)
    return [Peer(other, value, state == TrialState.DONE) for other, value, state in others if other != trial_id]


def _begun(session: Session, study: Study) -> Begun:
    return Begun(*session.leases.count(study.study_id))


def _add_waiting(session: Session, study: Study, configurations: Sequence[Configuration]) -> list[str]:
    """Store trials that wait for an owner, in this order; return their ids."""
    trial_ids = sorted(new_ulid() for _ in configurations)  # of one millisecond they have no order
    for trial_id, configuration in zip(trial_ids, configurations, strict=True):
        session.leases.add(life.waiting(study.study_id, trial_id, configuration))
    return trial_ids


def _settle(session: Session, request: RequestKey | None, made: Sequence[str]) -> None:
    if request:
        session.requests.settle(request, made)
