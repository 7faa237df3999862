"""The stored knowledge that a study can start from: runs of its workload, and earlier studies over its space."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import Study, TrialRecord
from crosswind.data.store.store import Store
from crosswind.models.tuner.evidence.prior_studies import bounded, features_of, is_comparable, prior_sources
from crosswind.models.tuner.search.search import Earlier
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.study.aim import Aim

STUDIES_MAX = 50  # newest that are comparable, of which trials are read
RUNS_MAX = 2_000  # newest of the workload
UNKNOWN = "unknown"  # the system of a study that does not tell; no run is of its own place then

_log = logging.getLogger("crosswind.tuner")


@dataclass(frozen=True)
class StoredEarlier:
    """Looks up in a store what a study can start from; what cannot be read is left out and told in the log."""

    store: Store

    def __call__(self, study: Study) -> Earlier:
        """Runs of the study's workload first, those of its own place before others, then earlier studies."""
        records = self._records(study)
        described = self._described(records) | features_of(study)
        parts = (lambda: self._of_runs(study, described), lambda: self._of_studies(study, described))
        sources = [source for part in parts for source in _readable(part, study)]
        return Earlier(bounded(sources), described)

    def _records(self, study: Study) -> list[TrialRecord]:
        with self.store.catalog.read() as session:
            return session.leases.records(study.study_id)

    def _described(self, records: Sequence[TrialRecord]) -> dict[str, float | str]:
        """Workload, system and scale of the study's newest run, where it has one."""
        run = self._newest_run(records)
        if run is None:
            return {}
        ranks = {} if run.world_size is None else {"world_size": float(run.world_size)}
        return {"workload": run.workload, "system": run.system, **ranks}

    def _newest_run(self, records: Sequence[TrialRecord]) -> Run | None:
        run_ids = [record.run_id for record in records if record.run_id]
        with self.store.catalog.read() as session, suppress(NotFoundError):
            return session.runs.get(run_ids[-1]) if run_ids else None
        return None

    def _of_runs(self, study: Study, described: Mapping[str, float | str]) -> list[Source]:
        """Sources made of runs; none while nothing tells the study's workload, or runs have no such objective."""
        from crosswind.models.tuner.evidence.from_runs import evidence_of_runs  # noqa: PLC0415 - pandas
        from crosswind.models.tuner.evidence.sought import Sought  # noqa: PLC0415

        if "workload" not in described:
            return []
        space, ranks = Space.from_json(study.space), described.get("world_size")
        sought = Sought(
            str(described["workload"]),
            str(described.get("system", UNKNOWN)),
            space,
            study.objective,
            world_size=None if ranks is None or "world_size" in space.domains else int(ranks),
            study_id=study.study_id,
            runs_max=RUNS_MAX,
        )
        try:
            evidence = evidence_of_runs(self.store, sought)
        except InvalidInputError:  # an objective that the program alone tells
            return []
        name, trials = f"{sought.workload} here", evidence.trials
        own = Source(name, [trial.configuration for trial in trials], [trial.objective for trial in trials], described)
        return [_signed(source, Aim.of(study)) for source in ((own,) if trials else ()) + evidence.sources]

    def _of_studies(self, study: Study, described: Mapping[str, float | str]) -> list[Source]:
        """Sources made of the trials of other studies; those with a run are told by that where the workload is."""
        with self.store.catalog.read() as session:
            others = [other for other in session.studies.all() if is_comparable(study, other)][:STUDIES_MAX]
            trials = [(other, session.leases.records(other.study_id)) for other in others]
        if "workload" in described:
            trials = [(other, [record for record in records if not record.run_id]) for other, records in trials]
        return list(prior_sources(study, trials))


def _readable(part: Callable[[], Sequence[Source]], study: Study) -> Iterator[Source]:
    try:
        yield from part()
    except Exception:  # noqa: BLE001 - what was measured before helps a study and must never stop it
        _log.warning("study %s: some of what was measured before cannot be read", study.name, exc_info=True)


def _signed(source: Source, aim: Aim) -> Source:
    """The source with its objectives as the study keeps them, lower is better."""
    if not aim.is_maximised:
        return source
    return replace(source, objectives=[None if objective is None else -objective for objective in source.objectives])
