"""The stored evidence that a study can start from: runs of its workload, and other studies over its space."""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.access import RowRule
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.login import login_name
from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import Study, TrialRecord
from crosswind.data.store.store import Store
from crosswind.models.tuner.evidence.agreement import Features, Profile
from crosswind.models.tuner.evidence.prior_studies import SOURCES_MAX, UNREADABLE, Choice, choose_studies, why
from crosswind.models.tuner.evidence.systems import descriptors_of
from crosswind.models.tuner.search.search import PriorStudies
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.space.space import Space

if TYPE_CHECKING:
    from crosswind.models.tuner.evidence.query import Evidence

STUDIES_MAX = 200  # newest, which are compared
RUNS_MAX = 2_000  # newest of the workload
REASONS_MAX = 2  # why runs are left out, the commonest
UNKNOWN = "unknown"  # the system of a study that names none; no run is of its own place then

_log = logging.getLogger("crosswind.tuner")


@dataclass(frozen=True)
class StoredPriorStudies:
    """Looks up in a store what a study can start from; evidence that cannot be read is left out, and that is said.

    A study of another user than this process's learns from the rows that its owner may see, whoever asks for a trial.
    """

    store: Store

    def __call__(self, study: Study) -> PriorStudies:
        """Return runs of the study's workload first, those of its own place before others, then other studies."""
        lookup = _Lookup(self._seen_by_owner(study), study)
        own = lookup.profile(study)
        if study.sources == ():
            return PriorStudies((), own.features)
        choice = Choice(own)
        parts = (("stored runs", lookup.add_runs), ("other studies", lookup.add_studies))
        for name, add in parts:
            try:
                add(choice)
            except Exception as error:  # noqa: BLE001 - prior studies help a study and must never stop it
                _log.warning("study %s: %s cannot be read", study.name, name, exc_info=True)
                choice.leave_out(name, f"{UNREADABLE}: {error}")
        return PriorStudies(tuple(choice.sources), own.features, choice.report)

    def _seen_by_owner(self, study: Study) -> Store:
        with self.store.catalog.read() as session:
            try:
                owned = session.studies.ownership(study.study_id)
            except NotFoundError:  # it is being made, by whoever this store is for
                return self.store
        if owned.owner in (None, login_name()):
            return self.store
        accounts = frozenset({owned.account} if owned.account else ())
        return self.store.seen_by(RowRule(users=frozenset({owned.owner}), accounts=accounts))


@dataclass
class _Lookup:
    """One look into the store for one study; `has_runs` once its workload's runs were taken as sources."""

    store: Store
    study: Study
    has_runs: bool = False

    @cached_property
    def systems(self) -> Mapping[str, Features]:
        """Descriptions of systems, by the checks of their nodes; none where these cannot be read."""
        try:
            return descriptors_of(self.store)
        except Exception:  # noqa: BLE001 - as above
            _log.warning("study %s: checks cannot be read", self.study.name, exc_info=True)
            return {}

    def profile(self, study: Study) -> Profile:
        """Return what is known of a study; its newest run is looked up only if it does not say its workload."""
        run = None if study.workload and study.system and study.world_size else self._newest_run(study)
        return Profile.of(study, run, self.systems)

    def add_runs(self, choice: Choice) -> None:
        """Add sources made of runs; none without a workload, or where the study names its sources."""
        workload = choice.own.workload
        if workload is None or self.study.sources is not None or not self._has_run_of(workload):
            return
        from crosswind.models.tuner.evidence.from_runs import evidence_of_runs  # noqa: PLC0415 - pandas
        from crosswind.models.tuner.evidence.query import RunQuery  # noqa: PLC0415

        features, space = choice.own.features, Space.from_json(self.study.space)
        ranks = features.get("world_size")
        query = RunQuery(
            workload,
            str(features.get("system", UNKNOWN)),
            space,
            self.study.objective,
            world_size=None if ranks is None or "world_size" in space.domains else int(ranks),
            study_id=self.study.study_id,
            runs_max=RUNS_MAX,
        )
        try:
            evidence = evidence_of_runs(self.store, query)
        except InvalidInputError:  # an objective that only the program reports
            return
        self._add_runs(choice, evidence)
        if not choice.sources and evidence.left_out:
            choice.leave_out(f"runs of {workload}", f"none has an objective in this space ({_reasons(evidence)})")

    def add_studies(self, choice: Choice) -> None:
        """Add sources made of other studies' trials; of these, trials whose runs are sources do not count again."""
        with self.store.catalog.read() as session:
            others = session.studies.all()
        newest = others if self.study.sources else others[:STUDIES_MAX]
        choose_studies(choice, map(self.profile, newest), self._records)

    def _records(self, study: Study) -> list[TrialRecord]:
        with self.store.catalog.read() as session:
            records = session.leases.records(study.study_id)
        return [record for record in records if not (self.has_runs and record.run_id)]

    def _add_runs(self, choice: Choice, evidence: "Evidence") -> None:
        """Add the runs of the study's own place as one source, then those of other places."""
        trials, own = evidence.trials, choice.own
        rows = [trial.configuration for trial in trials], [trial.objective for trial in trials]
        here = (Source(f"{own.workload} here", *rows, own.features),) if trials else ()
        for source in (*here, *evidence.sources):
            self.has_runs = True
            _use_runs(choice, _negated(source) if self.study.is_maximised else source)

    def _has_run_of(self, workload: str) -> bool:
        with self.store.catalog.read() as session:
            return bool(session.runs.find(RunFilter(workload=workload), limit=1))

    def _newest_run(self, study: Study) -> Run | None:
        with self.store.catalog.read() as session, suppress(NotFoundError):
            run_id = session.leases.newest_run(study.study_id)
            return session.runs.get(run_id) if run_id else None
        return None


def _use_runs(choice: Choice, source: Source) -> None:
    """Use runs as a source, unless there are nearer ones enough."""
    if choice.is_full:
        choice.leave_out(source.name, f"same workload, but {SOURCES_MAX} nearer sources are used")
        return
    choice.use(source, why("stored runs of the same workload", choice.own.study, source))


def _reasons(evidence: "Evidence") -> str:
    commonest = sorted(evidence.left_out.items(), key=lambda pair: -pair[1])[:REASONS_MAX]
    return ", ".join(f"{count}: {reason}" for reason, count in commonest)


def _negated(source: Source) -> Source:
    """Return the source with objectives as a study keeps them that maximises: lower is better."""
    return replace(source, objectives=[None if objective is None else -objective for objective in source.objectives])
