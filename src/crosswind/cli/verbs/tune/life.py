"""Studies as a whole: from list and show to rename and delete; and trials that people add: enqueue, retry."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from crosswind.cli.text.output import say, say_json, table
from crosswind.cli.verbs.tune.filling import text_of
from crosswind.cli.verbs.tune.source_words import source_lines
from crosswind.cli.verbs.tune.trial_table import as_measured, trial_table, with_unit
from crosswind.cli.verbs.tune.where import place_of, service_at
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Parameter, Study, StudyState, TrialRecord, TrialState
from crosswind.models.tuner.service.service import StudyService, StudyStatus
from crosswind.settings import Settings

OK, NOT_CONFIRMED = 0, 1
SHOWN = 10  # newest trials
STATES = {
    StudyState.RUNNING: "hands out trials",
    StudyState.PAUSED: "is paused: it hands out no trial until `crosswind tune resume`",
    StudyState.STOPPED: "is stopped: it hands out no more trials",
}


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Does the action."""
    kind, address = place = place_of(arguments)
    with service_at(place, settings) as service:
        if arguments.action == "list":
            return _list(arguments, service, f"{kind} {address or settings.home}")
        return _ACTIONS[arguments.action](arguments, service)


def _list(arguments: argparse.Namespace, service: StudyService, place: str) -> int:
    listed = service.studies()
    if arguments.json:
        say_json({"place": place, "studies": [_status_json(status) for status in listed]})
    elif listed:
        rows = [_row(status) for status in listed]
        say(table(("study", "objective", "trials", "budget", "best", "configuration"), rows))
        say(f"in the {place}")
    else:
        say(f"there is no study in the {place}; crosswind tune create STUDY.yaml makes one")
    return OK


def _row(status: StudyStatus) -> tuple[str, ...]:
    study, best = status.study, status.best
    return (
        study.name if study.state is StudyState.RUNNING else f"{study.name} ({study.state})",
        _objective_words(study),
        _counts_words(status),
        _budget_words(status),
        "-" if best is None else _measured_words(study, best),
        "-" if best is None else _configuration_words(best.trial.configuration),
    )


def _show(arguments: argparse.Namespace, service: StudyService) -> int:
    status = service.status(arguments.study)
    records = as_measured(status.study, service.trials(arguments.study))
    if arguments.json:
        say_json({**_status_json(status), "records": [record.as_nested_json() for record in records]})
        return OK
    study, best = status.study, status.best
    say(f"study {study.name} ({study.study_id}): {_objective_words(study)}")
    say(f"budget: {_budget_words(status)}; trials: {_counts_words(status)}")
    say(f"it {STATES[study.state]}") if study.state is not StudyState.RUNNING else None
    parameters, further = _space_parts(study)
    say(
        table(("parameter", "values", "applies when"), [_parameter_row(*parameter) for parameter in parameters.items()])
    )
    say("\n".join(further)) if further else None
    say(sources) if (sources := source_lines(status)) else None
    if records:
        newest = records[-SHOWN:]
        say(trial_table(newest))
        say(f"these are the newest {SHOWN} of {len(records)} trials") if len(records) > SHOWN else None
    say(f"best: {_measured_words(study, best)}: {_configuration_words(best.trial.configuration)}") if best else None
    return OK


def _extend(arguments: argparse.Namespace, service: StudyService) -> int:
    service.extend(arguments.study, trials=arguments.trials, hours=arguments.hours)
    status = service.status(arguments.study)
    _answer(arguments, status, f"study {status.study.name}: budget {_budget_words(status)}")
    return OK


def _turned(arguments: argparse.Namespace, service: StudyService) -> int:
    """Pauses, resumes or stops."""
    study = {"pause": service.pause, "resume": service.resume, "stop": service.stop}[arguments.action](arguments.study)
    status = service.status(study.study_id)
    running = status.counts.get(TrialState.LEASED, 0)
    words = f", {running} {'trial' if running == 1 else 'trials'} still running" if running else ""
    _answer(arguments, status, f"study {study.name} {STATES[study.state]}{words}")
    return OK


def _rename(arguments: argparse.Namespace, service: StudyService) -> int:
    study = service.rename(arguments.study, arguments.name, force=arguments.force)
    _answer(arguments, service.status(study.study_id), f"study {arguments.study} is now called {study.name}")
    return OK


def _delete(arguments: argparse.Namespace, service: StudyService) -> int:
    status = service.status(arguments.study)
    n_trials = sum(status.counts.values())
    if n_trials and not arguments.yes and not _is_confirmed(status.study, n_trials):
        sys.stderr.write(f"crosswind: study {status.study.name} is kept\n")
        return NOT_CONFIRMED
    service.delete(arguments.study, force=arguments.force)
    _answer(arguments, status, f"study {status.study.name} with {n_trials} trials is deleted; stored runs stay")
    return OK


def _is_confirmed(study: Study, n_trials: int) -> bool:
    """Ask on the terminal. Raises: InvalidInputError without one."""
    if not sys.stdin.isatty():
        raise InvalidInputError(f"study {study.name} has {n_trials} trials, expected --yes to delete them")
    sys.stderr.write(f"delete study {study.name} with its {n_trials} trials? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _enqueue(arguments: argparse.Namespace, service: StudyService) -> int:
    study = service.status(arguments.study).study
    configurations = [_of_file(path) for path in arguments.config]
    if arguments.values:
        configurations.append(_of_words(arguments.values, study))
    if not configurations:
        raise InvalidInputError("enqueue: expected NAME=VALUE ... or --config FILE")
    _say_records(arguments, service.enqueue(arguments.study, configurations))
    return OK


def _retry(arguments: argparse.Namespace, service: StudyService) -> int:
    _say_records(arguments, [service.retry(arguments.study, arguments.trial)])
    return OK


_ACTIONS: Mapping[str, Callable[[argparse.Namespace, StudyService], int]] = {
    "show": _show,
    "extend": _extend,
    **dict.fromkeys(("pause", "resume", "stop"), _turned),
    "rename": _rename,
    "delete": _delete,
    "enqueue": _enqueue,
    "retry": _retry,
}


def _of_file(path: Path) -> Configuration:
    """Return the configuration in a JSON, YAML or TOML file; the service checks it against the space."""
    from crosswind.models.tuner.study.study_text import mapping_in  # noqa: PLC0415 - seldom asked for

    return dict(mapping_in(path))  # type: ignore[arg-type]


def _of_words(words: list[str], study: Study) -> Configuration:
    """Return the configuration of NAME=VALUE words. Raises: InvalidInputError."""
    parameters, configuration = _space_parts(study)[0], dict[str, Parameter]()
    for word in words:
        name, separator, text = word.partition("=")
        if not name or not separator:
            raise InvalidInputError(f"enqueue: {word[:80]!r}: expected NAME=VALUE")
        if name in configuration:
            raise InvalidInputError(f"enqueue: {name} stands twice, expected it once")
        configuration[name] = _value(text, parameters.get(name))
    return configuration


def _value(text: str, parameter: object) -> Parameter:
    """Return the value that a word means: the listed one that is printed so, else what JSON makes of it, else text."""
    listed = parameter.get("values") if isinstance(parameter, Mapping) else None
    for value in listed or ():
        if text_of(value) == text:
            return value  # type: ignore[no-any-return]
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text


def _space_parts(study: Study) -> tuple[dict[str, object], list[str]]:
    """Return the parameters' definitions by name, and lines that say what binds them."""
    space = study.space
    parameters = space.get("parameters")
    if not isinstance(parameters, Mapping) or isinstance(parameters.get("kind"), str):
        return dict(space), []
    constraints = space.get("constraints")
    lines = [f"constraint: {text}" for text in constraints] if isinstance(constraints, list | tuple) else []
    facts = space.get("facts")
    if isinstance(facts, Mapping) and facts:
        lines.append("facts: " + " ".join(f"{name}={text_of(value)}" for name, value in facts.items()))
    return dict(parameters), lines


def _parameter_row(name: str, definition: object) -> tuple[str, str, str]:
    fields = dict(definition) if isinstance(definition, Mapping) else {}
    kind, when = fields.get("kind"), fields.get("when")
    if "values" in fields:
        values = " ".join(text_of(value) for value in fields["values"])
    elif kind == "boolean":
        values = "false true"
    else:
        step = f", step {fields['step']}" if fields.get("step") else ""
        values = f"{kind} {fields.get('low')} to {fields.get('high')}{step}{', log' if fields.get('log') else ''}"
    return name, values, str(when or "")


def _objective_words(study: Study) -> str:
    texts = study.objectives or (f"{'maximise' if study.is_maximised else 'minimise'} {study.objective}",)
    return ", ".join((*texts, *study.limits))


def _counts_words(status: StudyStatus) -> str:
    counted = [f"{status.counts[state]} {state}" for state in TrialState if status.counts.get(state)]
    return ", ".join(counted) or "none"


def _budget_words(status: StudyStatus) -> str:
    """Return how much of the budget is used, such as `12 of 20 trials, 8 h`."""
    study = status.study
    trials = [] if study.trials_max is None else [f"{status.charged} of {study.trials_max} trials"]
    hours = [] if study.hours is None else [f"{study.hours:.3g} h"]
    return ", ".join((*trials, *hours)) or "no limit"


def _measured_words(study: Study, record: TrialRecord) -> str:
    objective = record.trial.objective
    return "-" if objective is None else with_unit(study, study.signed(objective))


def _configuration_words(configuration: Configuration) -> str:
    return " ".join(f"{name}={text_of(value)}" for name, value in configuration.items())


def _status_json(status: StudyStatus) -> dict[str, object]:
    study, best = status.study, status.best
    objective = None if best is None or best.trial.objective is None else study.signed(best.trial.objective)
    return {
        **study.as_json(),
        "trials": {str(state): count for state, count in status.counts.items()},
        "charged": status.charged,
        "is_exhausted": status.is_exhausted,
        "best": None if best is None else {"trial_id": best.trial_id, "configuration": best.trial.configuration},
        "best_objective": objective,
        "sources": status.sources.as_json(),
    }


def _answer(arguments: argparse.Namespace, status: StudyStatus, text: str) -> None:
    if arguments.json:
        say_json(_status_json(status))
    else:
        say(text)


def _say_records(arguments: argparse.Namespace, records: list[TrialRecord]) -> None:
    if arguments.json:
        say_json([record.as_nested_json() for record in records])
    else:
        say(trial_table(records))
