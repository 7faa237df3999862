"""Trials of other studies as sources of a study over the same parameters."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from crosswind.data.schema.trial import Configuration, Study, TrialRecord, TrialState
from crosswind.models.tuner.evidence.values import covered
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.study.aim import DIRECTION, Aim

FAILED = frozenset({TrialState.FAILED, TrialState.INFEASIBLE})
DESCRIBED = ("workload", "system", "world_size", "node_count")  # words of `details` that describe what was run
PROGRAM = ("workload", "command")  # words of `details` that tell programs apart
SOURCES_MAX = 6  # nearest first; each is fitted anew when a study's search is made
ROWS_MAX = 400  # of a source: the best half, and an even spread of the others


def prior_sources(study: Study, others: Iterable[tuple[Study, Sequence[TrialRecord]]]) -> Iterator[Source]:
    """A source for each other study with the same objective whose trials cover this one's space, in the order given.

    Those that say they ran something else are none: another workload, or another command. A trial beyond this study's
    limits counts as failed.
    """
    space, aim = Space.from_json(study.space), Aim.of(study)
    for other, records in others:
        if is_comparable(study, other):
            yield from source_of(other, [_within(aim, record) for record in records], space, Counter())


def is_comparable(study: Study, other: Study) -> bool:
    """Return whether the other study's objectives may tell something of this one's."""
    if other.study_id == study.study_id or other.objective != study.objective:
        return False
    if other.details.get(DIRECTION) != study.details.get(DIRECTION):
        return False
    details = ((study.details.get(word), other.details.get(word)) for word in PROGRAM)
    return all(own == others or not own or not others for own, others in details)


def features_of(study: Study) -> dict[str, float | str]:
    """Return what the study's details say of the place where it is measured."""
    details = {name: study.details[name] for name in DESCRIBED if name in study.details}
    return {
        name: value if isinstance(value, str) else float(value)
        for name, value in details.items()
        if isinstance(value, str | int | float)
    }


def source_of(study: Study, records: Sequence[TrialRecord], space: Space, left_out: Counter[str]) -> Iterator[Source]:
    """The study as a source, where it has a trial that covers the space."""
    fitting = dict(_fitting(records, space, left_out))
    if fitting:
        configurations, objectives = zip(*fitting.values(), strict=True)
        yield Source(f"study {study.name}", configurations, objectives, features_of(study))


def _fitting(
    records: Sequence[TrialRecord], space: Space, left_out: Counter[str]
) -> Iterator[tuple[str, tuple[Configuration, float | None]]]:
    """By key the configurations with their objectives, None for a failure; of several trials the last one."""
    for record in records:
        trial = record.trial
        if trial.state is not TrialState.DONE and trial.state not in FAILED:
            continue
        configuration, fault = covered(space, trial.configuration)
        if fault:
            left_out[fault] += 1
        else:
            yield space.key(configuration), (configuration, trial.objective)


def _within(aim: Aim, record: TrialRecord) -> TrialRecord:
    """The trial, failed where its outcomes tell that it exceeds a limit."""
    judged = aim.judge(record)
    if judged is None or judged.keeps_limits:
        return record
    return replace(record, trial=replace(record.trial, state=TrialState.INFEASIBLE, objective=None))


def bounded(sources: Iterable[Source]) -> tuple[Source, ...]:
    """The first SOURCES_MAX sources, of each at most ROWS_MAX rows."""
    return tuple(_fewer(source) for source in islice(sources, SOURCES_MAX))


def _fewer(source: Source) -> Source:
    if len(source.objectives) <= ROWS_MAX:
        return source
    order = sorted(range(len(source.objectives)), key=lambda place: _rank(source.objectives[place]))
    best, others = order[: ROWS_MAX // 2], order[ROWS_MAX // 2 :]
    step = len(others) / (ROWS_MAX - len(best))
    kept = sorted([*best, *(others[int(number * step)] for number in range(ROWS_MAX - len(best)))])
    configurations = [source.configurations[place] for place in kept]
    return replace(source, configurations=configurations, objectives=[source.objectives[place] for place in kept])


def _rank(objective: float | None) -> tuple[bool, float]:
    """Failures last."""
    return objective is None, objective or 0.0
