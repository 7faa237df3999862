"""Trials of earlier studies that no stored run belongs to: imported ones, or measured by hand."""

from collections import Counter
from collections.abc import Iterator

from crosswind.data.schema.trial import Study
from crosswind.data.store.store import Store
from crosswind.models.tuner.evidence.prior_studies import source_of
from crosswind.models.tuner.evidence.sought import Sought
from crosswind.models.tuner.search.source import Source


def sources_of_studies(store: Store, sought: Sought, left_out: Counter[str]) -> Iterator[Source]:
    """A source for each study that is named, or whose `details` tell a workload that is sought.

    Its objective must be the same expression, and its trials cover the space; those that do not are counted in
    `left_out`. Trials with a run are told by that. Raises: NotFoundError for a named study that is not there.
    """
    with store.catalog.read() as session:
        named = {session.studies.get(name).study_id for name in sought.studies}
        studies = [candidate for candidate in session.studies.all() if _is_sought(candidate, named, sought)]
        records = {candidate.study_id: session.leases.records(candidate.study_id) for candidate in studies}
    for study in studies:
        if study.objective != sought.objective:
            left_out["of a study with another objective"] += len(records[study.study_id])
            continue
        untold = [record for record in records[study.study_id] if not record.run_id]
        yield from source_of(study, untold, sought.space, left_out)


def _is_sought(study: Study, named: set[str], sought: Sought) -> bool:
    is_related = study.details.get("workload") in (sought.workload, *sought.related)
    return study.study_id != sought.study_id and (study.study_id in named or is_related)
