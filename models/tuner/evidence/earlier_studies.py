"""Trials of earlier studies that no stored run belongs to: imported ones, or measured by hand."""

from collections import Counter
from collections.abc import Iterator

from crosswind.data.store import Store
from crosswind.data.trial import Configuration, Study, TrialRecord, TrialState
from crosswind.models.tuner.evidence.sought import Sought
from crosswind.models.tuner.evidence.values import covered
from crosswind.models.tuner.source import Source

FAILED = frozenset({TrialState.FAILED, TrialState.INFEASIBLE})
DESCRIBED = ("workload", "system", "world_size", "node_count")  # words of `details` that describe what was run


def sources_of_studies(store: Store, sought: Sought, left_out: Counter[str]) -> Iterator[Source]:
    """A source for each study that is named, or whose `details` tell a workload that is sought.

    Its objective must be the same expression, and its trials cover the space; those that do not are counted in
    `left_out`. Trials with a run are told by that. Raises: NotFoundError for a named study that is not there.
    """
    with store.catalog.read() as session:
        named = {session.studies.get(each).study_id for each in sought.studies}
        studies = [each for each in session.studies.all() if _is_sought(each, named, sought)]
        records = {each.study_id: session.leases.records(each.study_id) for each in studies}
    for study in studies:
        if study.objective != sought.objective:
            left_out["of a study with another objective"] += len(records[study.study_id])
            continue
        found = dict(_fitting([each for each in records[study.study_id] if not each.run_id], sought, left_out))
        if found:
            configurations, objectives = zip(*found.values(), strict=True)
            yield Source(f"study {study.name}", configurations, objectives, _features(study))


def _is_sought(study: Study, named: set[str], sought: Sought) -> bool:
    is_related = study.details.get("workload") in (sought.workload, *sought.related)
    return study.study_id != sought.study_id and (study.study_id in named or is_related)


def _fitting(
    records: list[TrialRecord], sought: Sought, left_out: Counter[str]
) -> Iterator[tuple[str, tuple[Configuration, float | None]]]:
    """By key the configurations with their objectives, None for a failure; of several trials the last one."""
    for record in records:
        trial = record.trial
        if trial.state is not TrialState.DONE and trial.state not in FAILED:
            continue
        configuration, fault = covered(sought.space, trial.configuration)
        if fault:
            left_out[fault] += 1
        else:
            yield sought.space.key(configuration), (configuration, trial.objective)


def _features(study: Study) -> dict[str, float | str]:
    """What the study's details say of the place where it was measured."""
    told = {name: study.details[name] for name in DESCRIBED if name in study.details}
    return {
        name: value if isinstance(value, str) else float(value)
        for name, value in told.items()
        if isinstance(value, str | int | float)
    }
