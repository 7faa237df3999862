"""Trials of other studies as sources of a study over the same parameters, and why each is one or not."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from crosswind.data.schema.answers.studies import SourceLeftOut, StudySource, StudySources
from crosswind.data.schema.errors import ProjectError
from crosswind.data.schema.trial import Configuration, Study, TrialRecord, TrialState
from crosswind.models.tuner.evidence.agreement import (
    Agreement,
    Profile,
    agreement_of,
    features_of,
    is_named,
    place_words,
)
from crosswind.models.tuner.evidence.values import covered
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.space.space import Space
from crosswind.models.tuner.study.aim import Aim

FAILED = frozenset({TrialState.FAILED, TrialState.INFEASIBLE})
SOURCES_MAX = 6  # nearest first; all are fitted again when a study's search is made
ROWS_MAX = 400  # of a source: the best half, and an even spread of the others
MEASURED_MIN = 3  # configurations of a study, to say anything
LEFT_OUT_MAX = 5  # listed, the nearest first
UNREADABLE = "cannot be read"

Read = Callable[[Study], Sequence[TrialRecord]]


@dataclass
class Choice:
    """The sources of a study as they are chosen, the nearest first, and those that were left out."""

    own: Profile
    sources: list[Source] = field(default_factory=list)
    used: list[StudySource] = field(default_factory=list)
    left_out: list[SourceLeftOut] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Return whether no further source counts."""
        return len(self.sources) >= SOURCES_MAX

    @property
    def report(self) -> StudySources:
        """The sources in words."""
        more = max(len(self.left_out) - LEFT_OUT_MAX, 0)
        return StudySources(tuple(self.used), tuple(self.left_out[:LEFT_OUT_MAX]), more)

    def use(self, source: Source, why: str) -> None:
        """Take a source."""
        self.sources.append(telling(source))
        self.used.append(StudySource(source.name, why))

    def leave_out(self, name: str, reason: str) -> None:
        """Note what is no source."""
        self.left_out.append(SourceLeftOut(name, reason))


def choose_studies(choice: Choice, others: Iterable[Profile], read: Read, *, trials_max: int | None = None) -> None:
    """Add studies to the choice, the nearest first, until it is full; their trials are read only then.

    Args:
        choice: Of the study that looks for sources.
        others: All studies in reach, the newest first.
        read: Returns a study's trials; a study for which it raises ProjectError is left out.
        trials_max: After which no further study is read; None for no bound.
    """
    profiles = [other for other in others if _is_other(choice.own, other)]
    compared = [(agreement, other) for other in profiles if (agreement := _compared(choice.own, other))]
    n_trials = 0
    for agreement, other in sorted(compared, key=lambda pair: pair[0].order):
        name = source_name(other.study)
        if agreement.grounds is None:
            choice.leave_out(name, agreement.reason)
        elif choice.is_full:
            choice.leave_out(name, f"{agreement.reason}, but {SOURCES_MAX} nearer sources are used")
        elif trials_max is not None and n_trials > trials_max:
            choice.leave_out(name, f"{agreement.reason}, but {n_trials} trials of nearer studies were read")
        else:
            try:
                records = read(other.study)
            except ProjectError as error:
                choice.leave_out(name, f"{UNREADABLE}: {error}")
                continue
            n_trials += len(records)
            _add(choice, other, agreement, records)
    _leave_out_absent(choice, [other.study for other in profiles])


def _is_other(own: Profile, other: Profile) -> bool:
    """Return whether the other one is to be looked at: of a study that names its sources, these alone."""
    if other.study.study_id == own.study.study_id:
        return False
    return own.study.sources is None or is_named(own.study, other.study)


def _compared(own: Profile, other: Profile) -> Agreement | None:
    try:
        return agreement_of(own, other)
    except ProjectError as error:
        return Agreement(None, f"{UNREADABLE}: {error}")


def _leave_out_absent(choice: Choice, others: Sequence[Study]) -> None:
    present = {text for other in others for text in (other.name, other.study_id)}
    for name in choice.own.study.sources or ():
        if name not in present and not any(one.name == f"study {name}" for one in choice.left_out):
            choice.leave_out(f"study {name}", "is not there")


def _add(choice: Choice, other: Profile, agreement: Agreement, records: Sequence[TrialRecord]) -> None:
    study, aim = choice.own.study, Aim.of(choice.own.study)
    space, left_out = Space.from_json(study.space), Counter[str]()
    judged = [_within(aim, record) for record in records]
    source = next(source_of(other.study, judged, space, left_out), None)
    measured = sum(objective is not None for objective in source.objectives) if source else 0
    if source is None or measured < MEASURED_MIN:
        choice.leave_out(source_name(other.study), _too_few(measured, len(records), left_out))
        return
    source = replace(source, features=other.features)
    choice.use(source, why(agreement.reason, study, source))


def why(reason: str, study: Study, source: Source) -> str:
    """Return why a source is used: `same workload, 8 of 8 parameters, 240 configurations, system B at 16 ranks`."""
    n_parameters, n_rows = len(Space.from_json(study.space).domains), len(source.objectives)
    rows = f"{n_rows} configuration{'' if n_rows == 1 else 's'}"
    words = (reason, f"{n_parameters} of {n_parameters} parameters", rows, place_words(source.features))
    return ", ".join(word for word in words if word)


def _too_few(measured: int, n_records: int, left_out: Counter[str]) -> str:
    fault = left_out.most_common(1)
    reason = f" ({fault[0][1]}: {fault[0][0]})" if fault else ""
    return f"{measured} of {n_records} trials measured in this space, expected {MEASURED_MIN}{reason}"


def source_name(study: Study) -> str:
    """Return the name of a study as a source."""
    return f"study {study.name}"


def source_of(study: Study, records: Sequence[TrialRecord], space: Space, left_out: Counter[str]) -> Iterator[Source]:
    """Return the study as a source, where it has a trial that covers the space."""
    fitting = dict(_fitting(records, space, left_out))
    if fitting:
        configurations, objectives = zip(*fitting.values(), strict=True)
        yield Source(source_name(study), configurations, objectives, features_of(study))


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


def telling(source: Source) -> Source:
    """Return the source with at most ROWS_MAX rows: the best half, and an even spread of the others."""
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
