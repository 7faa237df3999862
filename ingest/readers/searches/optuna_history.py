"""Optuna's studies as our histories: spaces from its distributions, objectives with lower as better."""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.trial import History, Parameter, Study, Trial, TrialState
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.searches.imported_history import NAME_LIMIT, imported_history
from crosswind.ingest.readers.searches.optuna_distribution import Distribution, distribution_of, domain_of
from crosswind.ingest.readers.searches.value_domain import allows

MINIMISE, MAXIMISE = 1, 2  # optuna.study.StudyDirection
STATES = {1: TrialState.DONE, 2: TrialState.PRUNED, 3: TrialState.FAILED}  # optuna.trial.TrialState
GOING = (0, 4)  # RUNNING, WAITING
OWN_STATE = "crosswind:state"  # a user attribute of trials


@dataclass
class StoredTrial:
    """One trial as in the storage: values of parameters in Optuna's own form, and their distributions."""

    number: int
    state: int
    line: int = 0
    values: Sequence[object] = ()
    parameters: dict[str, object] = field(default_factory=dict)
    distributions: dict[str, str] = field(default_factory=dict)
    is_infeasible: bool = False  # it failed because it cannot run, as `crosswind tune export` wrote beside it


@dataclass
class StoredStudy:
    """One study as in the storage."""

    name: str
    directions: Sequence[object]
    metric_names: object = None
    created_ns: int = 0
    trials: list[StoredTrial] = field(default_factory=list)


def history_of(stored: StoredStudy, report: Report, context: Context) -> History | None:
    """Return the study with its ended trials; None, and the reason in the report, if it cannot be one of ours."""
    if fault := _fault(stored):
        report.skip(0, stored.name, fault)
        return None
    study_id = imported_id("optuna", context.system, stored.name, stored.created_ns)
    reading = _Reading(report, study_id, -1 if stored.directions[0] == MAXIMISE else 1)
    ended = reading.trials(stored.trials)
    reading.note(stored.name)
    if not ended:
        return None
    space = {name: domain_of(reading.distributions[name]) for name in reading.names}
    trials = tuple(trial for trial in ended if _is_within(space, trial, report))
    objective = ("-" if reading.sign < 0 else "") + _metric_name(stored.metric_names)
    study = Study(study_id, stored.name, space, objective, "", 0, stored.created_ns)
    return imported_history(study, trials, report)


def _is_within(space: Mapping[str, Mapping[str, object]], trial: Trial, report: Report) -> bool:
    """Return whether the trial's values are of the study's space; if not, the report names the one that is not."""
    for name, value in trial.configuration.items():
        if not allows(space[name], value):
            number = int(trial.trial_id.rpartition("-")[2])
            report.skip(0, "", f"trial {number}: {name} is {value!r:.80}, of another domain than in the first trial")
            return False
    return True


def _fault(study: StoredStudy) -> str:
    if len(study.directions) != 1:
        return f"study {study.name!r:.80} has {len(study.directions)} objectives; expected one"
    if study.directions[0] not in (MINIMISE, MAXIMISE):
        return f"study {study.name!r:.80} does not say whether to minimise or to maximise"
    return (
        "" if 0 < len(study.name) <= NAME_LIMIT else f"name {study.name!r:.80}: expected 1 to {NAME_LIMIT} characters"
    )


def _metric_name(names: object) -> str:
    """Return the name given by `Study.set_metric_names`, if any."""
    named = isinstance(names, list) and len(names) == 1 and isinstance(names[0], str)
    return str(names[0])[: NAME_LIMIT - 1] if named and isinstance(names, list) and names[0] else "objective"


@dataclass
class _Reading:
    """One pass over the trials of a study."""

    report: Report
    study_id: str
    sign: int
    names: list[str] = field(default_factory=list)
    distributions: dict[str, list[Distribution]] = field(default_factory=dict)
    remarks: Counter[str] = field(default_factory=Counter)

    def trials(self, trials: Sequence[StoredTrial]) -> tuple[Trial, ...]:
        """Return the trials that ended and have every parameter, in their order."""
        self.names = list(dict.fromkeys(name for stored in trials if stored.state == 1 for name in stored.parameters))
        return tuple(trial for stored in trials if (trial := self._trial(stored)) is not None)

    def note(self, name: str) -> None:
        """Write the remarks into the report."""
        notes = [f"study {name!r:.80}: {count} {text}" for text, count in self.remarks.items() if count]
        if self.sign < 0:
            notes.append(f"study {name!r:.80} is to be maximised: its objective is stored with the sign turned")
        self.report.notes += notes

    def _trial(self, trial: StoredTrial) -> Trial | None:
        if trial.state in GOING:
            self.remarks["trials have not ended: left out"] += 1
            return None
        try:
            configuration = self._configuration(trial)
            objective = self._objective(trial)
        except MalformedError as error:
            self.report.skip(trial.line, "", f"trial {trial.number}: {error}")
            return None
        state = STATES[trial.state]
        if state is TrialState.DONE and objective is None:
            self.remarks["trials ended without a finite objective: failed"] += 1
            state = TrialState.FAILED
        if trial.is_infeasible and state is TrialState.FAILED:
            state = TrialState.INFEASIBLE
        return Trial(configuration, state, objective, f"{self.study_id}-{trial.number:08d}")

    def _configuration(self, trial: StoredTrial) -> Mapping[str, Parameter]:
        """Return values of all parameters of the space. Raises: MalformedError."""
        if trial.state not in STATES:
            raise MalformedError(f"state {trial.state!r:.40}; expected 0 to 4")
        lacking = [name for name in self.names if name not in trial.parameters]
        if lacking or not self.names:
            raise MalformedError(f"has no value of {', '.join(lacking)[:200] or 'any parameter'}, which others have")
        distributions = {name: distribution_of(trial.distributions.get(name)) for name in self.names}
        configuration = {name: distributions[name].external(trial.parameters[name]) for name in self.names}
        for name, distribution in distributions.items():
            self.distributions.setdefault(name, []).append(distribution)
        return configuration

    def _objective(self, trial: StoredTrial) -> float | None:
        """Return the objective, lower is better; None without a finite one. Raises: MalformedError."""
        if trial.state != 1:
            return None
        value = trial.values[0] if trial.values else None
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise MalformedError(f"value {value!r:.40} is no number")
        return None if value is None or not math.isfinite(value) else self.sign * float(value)


def parsed(text: object) -> object:
    """Return the value of a JSON text, None when it is none."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
