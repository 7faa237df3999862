"""Studies as a journal of Optuna: one operation a line, as its JournalFileBackend reads it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal

from crosswind.data.schema.trial import Configuration, Parameter, Study, TrialRecord, TrialState
from crosswind.models.tuner.exports.measured import directions, measured, metrics
from crosswind.models.tuner.space.space import Space

CREATE_STUDY, STUDY_ATTRIBUTE, CREATE_TRIAL = 0, 3, 4  # optuna.storages.journal.JournalOperation
MINIMISE, MAXIMISE = 1, 2  # optuna.study.StudyDirection
RUNNING, COMPLETE, PRUNED, FAIL, WAITING = range(5)  # optuna.trial.TrialState
STATES: Mapping[TrialState, int] = {
    TrialState.DONE: COMPLETE,
    TrialState.PRUNED: PRUNED,
    TrialState.FAILED: FAIL,
    TrialState.INFEASIBLE: FAIL,
    TrialState.LEASED: RUNNING,
    TrialState.WAITING: WAITING,
    TrialState.RELEASED: WAITING,
}
WORKER = "crosswind"
Form = tuple[Mapping[str, object], Sequence[Parameter] | None]  # a distribution as JSON, and its choices


def journal_of(study: Study, records: Sequence[TrialRecord]) -> str:
    """Return the study with its trials, which `optuna.storages.JournalStorage` opens.

    Trials keep their order, parameters, states and values; a trial that nobody has begun is enqueued. Times of trials
    are not known here: all are that of the study. `user_attrs` have the id, the reason and the outcomes.
    Source: optuna/storages/journal/_storage.py of Optuna 5.0.
    """
    return "".join(json.dumps(operation, ensure_ascii=False) + "\n" for operation in _operations(study, records))


def _operations(study: Study, records: Sequence[TrialRecord]) -> Iterator[dict[str, object]]:
    aims = [MAXIMISE if is_maximised else MINIMISE for is_maximised in directions(study)]
    yield {"op_code": CREATE_STUDY, "worker_id": WORKER, "study_name": study.name, "directions": aims}
    names = {"study:metric_names": metrics(study)}
    yield {"op_code": STUDY_ATTRIBUTE, "worker_id": WORKER, "study_id": 0, "system_attr": names}
    space = Space.from_json(study.space)
    forms = {name: _form(domain.as_json()) for name, domain in space.domains.items()}
    at = datetime.fromtimestamp(study.created_ns / 1e9, UTC).isoformat(timespec="microseconds")
    for record in records:
        yield {"op_code": CREATE_TRIAL, "worker_id": WORKER, "study_id": 0, **_trial(study, record, forms, at)}


def _trial(study: Study, record: TrialRecord, forms: Mapping[str, Form], at: str) -> dict[str, object]:
    configuration, values = record.trial.configuration, measured(study, record)
    state = STATES[record.trial.state]
    if state == COMPLETE and values is None:  # an outcome that an objective needs is missing
        state = FAIL
    is_single = values is None or len(values) == 1
    times: dict[str, object] = {"datetime_start": None if state == WAITING else at}
    times |= {"datetime_complete": at} if state in (COMPLETE, PRUNED, FAIL) else {}
    own = {"crosswind:trial": record.trial_id, "crosswind:state": str(record.trial.state)}
    own |= {"crosswind:reason": record.reason} if record.reason else {}
    values_asked = {} if state == WAITING else configuration
    return {
        "state": state,
        "value": values[0] if values and is_single else None,
        "values": None if is_single else values,
        **times,
        "distributions": {name: json.dumps(forms[name][0]) for name in values_asked},
        "params": {name: _internal(forms[name], value) for name, value in values_asked.items()},
        "user_attrs": {**own, **record.outcomes},
        "system_attrs": _enqueued(configuration) if state == WAITING else {},
        "intermediate_values": {},
    }


def _enqueued(configuration: Configuration) -> dict[str, object]:
    """Return what `Study.enqueue_trial` writes."""
    return {"fixed_params": dict(configuration)}


def _form(domain: Mapping[str, object]) -> Form:
    """Return the distribution of a domain; evenly spaced numbers in a list are a range with a step."""
    if domain["kind"] == "boolean":
        return _choices([False, True])
    listed = domain.get("values")
    if isinstance(listed, list):
        return (domain["kind"] == "ordinal" and _stepped(listed)) or _choices(listed)
    is_whole = domain["kind"] == "int"
    step = domain.get("step") or (1 if is_whole else None)
    is_log = bool(domain.get("log")) and step in (1, None)  # Optuna has no steps on a logarithmic scale
    return _range(is_whole, domain["low"], domain["high"], step=step, is_log=is_log)


def _range(is_whole: bool, low: object, high: object, *, step: object, is_log: bool) -> Form:
    name = "IntDistribution" if is_whole else "FloatDistribution"
    return {"name": name, "attributes": {"log": is_log, "step": step, "low": low, "high": high}}, None


def _choices(listed: Sequence[Parameter]) -> Form:
    return {"name": "CategoricalDistribution", "attributes": {"choices": list(listed)}}, listed


def _stepped(listed: Sequence[object]) -> Form | None:
    """Return the range of evenly spaced numbers, all whole or all real; None for others."""
    if len(listed) < 2 or len({type(value) for value in listed}) > 1 or not isinstance(listed[0], int | float):
        return None
    if isinstance(listed[0], bool):
        return None
    exact = [Decimal(str(value)) for value in listed]
    step = exact[1] - exact[0]
    if step <= 0 or any(value != exact[0] + place * step for place, value in enumerate(exact)):
        return None
    is_whole = isinstance(listed[0], int)
    return _range(is_whole, listed[0], listed[-1], step=int(step) if is_whole else float(step), is_log=False)


def _internal(form: Form, value: Parameter) -> float:
    """Return a value as storages have it: numbers as they are, choices by their place."""
    _, choices = form
    if choices is None:
        return float(value)
    return float(next(place for place, choice in enumerate(choices) if choice == value and type(choice) is type(value)))
