"""Trials of other studies as sources of a study over the same parameters."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from crosswind.data.schema.trial import Configuration, Study, TrialRecord, TrialState
from crosswind.models.tuner.evidence.values import covered
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.study.aim import Aim

FAILED = frozenset({TrialState.FAILED, TrialState.INFEASIBLE})
SOURCES_MAX = 6  # nearest first; all are fitted again when a study's search is made
ROWS_MAX = 400  # of a source: the best half, and an even spread of the others


def prior_sources(study: Study, others: Iterable[tuple[Study, Sequence[TrialRecord]]]) -> Iterator[Source]:
    """Return a source for each comparable study whose trials cover this one's space, in the order given.

    A trial beyond this study's limits counts as failed.
    """
    space, aim = Space.from_json(study.space), Aim.of(study)
    for other, records in others:
        yield from source_of(other, [_within(aim, record) for record in records], space, Counter())


def is_comparable(study: Study, other: Study) -> bool:
    """Return whether the other study's objectives say something about this one's.

    Not where the objective or its direction differs, nor where both name a workload or a command and these differ.
    """
    if other.study_id == study.study_id:
        return False
    if (other.objective, other.direction) != (study.objective, study.direction):
        return False
    programs = ((study.workload, other.workload), (study.command, other.command))
    return all(own == others or not own or not others for own, others in programs)


def features_of(study: Study) -> dict[str, float | str]:
    """Return the study's description of the place where it is measured, for the likeness of sources."""
    sizes = {"world_size": study.world_size, "node_count": study.node_count}
    texts = {"workload": study.workload, "system": study.system}
    return {
        **{name: text for name, text in texts.items() if text is not None},
        **{name: float(size) for name, size in sizes.items() if size is not None},
    }


def source_of(study: Study, records: Sequence[TrialRecord], space: Space, left_out: Counter[str]) -> Iterator[Source]:
    """Return the study as a source, where it has a trial that covers the space."""
    fitting = dict(_fitting(records, space, left_out))
    if fitting:
        configurations, objectives = zip(*fitting.values(), strict=True)
        yield Source(f"study {study.name}", configurations, objectives, features_of(study))


def _fitting(
    records: Sequence[TrialRecord], space: Space, left_out: Counter[str]
) -> Iterator[tuple[str, tuple[Configuration, float | None]]]:
    """Return by key the configurations with their objectives, None for a failure; of several trials the last one."""
    for record in records:
        trial = record.trial
        if record.is_void or (trial.state is not TrialState.DONE and trial.state not in FAILED):
            continue
        configuration, fault = covered(space, trial.configuration)
        if fault:
            left_out[fault] += 1
        else:
            yield space.key(configuration), (configuration, trial.objective)


def _within(aim: Aim, record: TrialRecord) -> TrialRecord:
    """Return the trial, failed where its outcomes exceed a limit."""
    judged = aim.judge(record)
    if judged is None or judged.keeps_limits:
        return record
    return replace(record, trial=replace(record.trial, state=TrialState.INFEASIBLE, objective=None))


def bounded(sources: Iterable[Source]) -> tuple[Source, ...]:
    """Return the first SOURCES_MAX sources, at most ROWS_MAX rows of each."""
    return tuple(_fewer(source) for source in islice(sources, SOURCES_MAX))


def _fewer(source: Source) -> Source:
    if len(source.objectives) <= ROWS_MAX:
        return source
    order = sorted(range(len(source.objectives)), key=lambda place: _rank(source.objectives[place]))
    best, others = order[: ROWS_MAX // 2], order[ROWS_MAX // 2 :]
    step = len(others) / (ROWS_MAX - len(best))
    rows = sorted([*best, *(others[int(number * step)] for number in range(ROWS_MAX - len(best)))])
    configurations = [source.configurations[row] for row in rows]
    return replace(source, configurations=configurations, objectives=[source.objectives[row] for row in rows])


def _rank(objective: float | None) -> tuple[bool, float]:
    """Order by objective, failures last."""
    return objective is None, objective or 0.0
