"""The stored evidence that a study can start from: runs of its workload, and other studies over its space."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import Study, TrialRecord
from crosswind.data.store.store import Store
from crosswind.models.tuner.evidence.prior_studies import bounded, features_of, is_comparable, prior_sources
from crosswind.models.tuner.search.search import PriorStudies
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.space.space import Space

STUDIES_MAX = 50  # newest that are comparable, of which trials are read
RUNS_MAX = 2_000  # newest of the workload
UNKNOWN = "unknown"  # the system of a study that names none; no run is of its own place then

_log = logging.getLogger("crosswind.tuner")


@dataclass(frozen=True)
class StoredPriorStudies:
    """Looks up in a store what a study can start from; evidence that cannot be read is left out, with a warning."""

    store: Store

    def __call__(self, study: Study) -> PriorStudies:
        """Return runs of the study's workload first, those of its own place before others, then other studies."""
        with self.store.catalog.read() as session:
            records = session.leases.records(study.study_id)
        features = self._newest_run_features(records) | features_of(study)
        parts = (lambda: self._of_runs(study, features), lambda: self._of_studies(study, features))
        sources = [source for part in parts for source in _readable(part, study)]
        return PriorStudies(bounded(sources), features)

    def _newest_run_features(self, records: Sequence[TrialRecord]) -> dict[str, float | str]:
        """Return workload, system and scale of the study's newest run, where it has one."""
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

    def _of_runs(self, study: Study, features: Mapping[str, float | str]) -> list[Source]:
        """Return sources made of runs; none without a workload, or where runs have no such objective."""
        if "workload" not in features:
            return []
        from crosswind.models.tuner.evidence.from_runs import evidence_of_runs  # noqa: PLC0415 - pandas
        from crosswind.models.tuner.evidence.query import RunQuery  # noqa: PLC0415

        space, ranks = Space.from_json(study.space), features.get("world_size")
        query = RunQuery(
            str(features["workload"]),
            str(features.get("system", UNKNOWN)),
            space,
            study.objective,
            world_size=None if ranks is None or "world_size" in space.domains else int(ranks),
            study_id=study.study_id,
            runs_max=RUNS_MAX,
        )
        try:
            evidence = evidence_of_runs(self.store, query)
        except InvalidInputError:  # an objective that only the program reports
            return []
        name, trials = f"{query.workload} here", evidence.trials
        own = Source(name, [trial.configuration for trial in trials], [trial.objective for trial in trials], features)
        sources = ((own,) if trials else ()) + evidence.sources
        return [_negated(source) for source in sources] if study.is_maximised else list(sources)

    def _of_studies(self, study: Study, features: Mapping[str, float | str]) -> list[Source]:
        """Return sources made of other studies' trials; where the workload is known, of those without a run."""
        with self.store.catalog.read() as session:
            others = [other for other in session.studies.all() if is_comparable(study, other)][:STUDIES_MAX]
            trials = [(other, session.leases.records(other.study_id)) for other in others]
        if "workload" in features:
            trials = [(other, [record for record in records if not record.run_id]) for other, records in trials]
        return list(prior_sources(study, trials))


def _readable(part: Callable[[], Sequence[Source]], study: Study) -> Iterator[Source]:
    try:
        yield from part()
    except Exception:  # noqa: BLE001 - prior studies help a study and must never stop it
        _log.warning("study %s: some of what was measured before cannot be read", study.name, exc_info=True)


def _negated(source: Source) -> Source:
    """Return the source with objectives as a study keeps them that maximises: lower is better."""
    return replace(source, objectives=[None if objective is None else -objective for objective in source.objectives])
