"""Results of a study so far: status, best, export."""

import argparse
import csv
import io
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module

from crosswind.cli.text.output import say, say_json
from crosswind.cli.verbs.tune.config_file import config_text
from crosswind.cli.verbs.tune.filling import text_of, variables
from crosswind.cli.verbs.tune.source_words import source_lines
from crosswind.cli.verbs.tune.sureness import answer_json, answer_of, answer_words
from crosswind.cli.verbs.tune.trial_table import as_measured, trial_table, with_unit
from crosswind.cli.verbs.tune.where import place_of, service_at
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.trial import Configuration, Study, StudyState, TrialRecord, TrialState
from crosswind.models.tuner.service.service import StudyService, StudyStatus
from crosswind.settings import Settings

OK = 0
OTHERS = {"optuna": ("optuna_journal", "journal_of"), "t4": ("t4", "results_of"), "ray": ("ray_points", "points_of")}
FACTS = ("trial_id", "state", "owner", "run_id", "reason")


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Does the action."""
    with service_at(place_of(arguments), settings) as service:
        {"status": _status, "best": _best, "export": _export}[arguments.action](arguments, service)
    return OK


def _status(arguments: argparse.Namespace, service: StudyService) -> None:
    overview = service.status(arguments.study)
    records, best = as_measured(overview.study, service.trials(arguments.study)), overview.best
    if arguments.json:
        front = [record.trial_id for record in overview.front]
        status = {
            "trials": [record.as_nested_json() for record in records],
            "best": as_measured(overview.study, [best])[0].as_nested_json()["trial"] if best else None,
            "front": front,
        }
        further = {
            "state": overview.study.state,
            "outside": overview.outside,
            "unjudged": overview.unjudged,
            "enough": overview.enough or None,
        }
        say_json(status | further | {"sources": overview.sources.as_json()})
        return
    say(trial_table(records))
    done = sum(record.trial.state is TrialState.DONE for record in records)
    budget = f", of a budget of {overview.study.trials_max}" if overview.study.trials_max else ""
    say(f"{done} of {len(records)} trials done{budget}{_best_words(overview.study, best)}")
    _say_limits(overview)
    if overview.study.state is not StudyState.RUNNING:
        say(f"the study is {overview.study.state}: crosswind tune resume {overview.study.name} goes on")
    if overview.enough:
        say(f"no more trials are begun: {overview.enough}")
    if lines := source_lines(overview):
        say(lines)


def _best_words(study: Study, best: TrialRecord | None) -> str:
    if best is None or best.trial.objective is None:
        return ""
    words = " ".join(f"{name}={text_of(value)}" for name, value in best.trial.configuration.items())
    return f"; best {with_unit(study, study.signed(best.trial.objective))}: {words}"


def _best(arguments: argparse.Namespace, service: StudyService) -> None:
    """The best configuration alone in a format that programs read, or with how sure that is for people."""
    overview = service.status(arguments.study)
    best, study = overview.best, overview.study
    if best is None or best.trial.objective is None:
        raise NotFoundError(f"study {study.name!r} has no trial with an objective yet")
    if not arguments.json and arguments.format != "text":
        sys.stdout.write(_formatted(arguments.format, best.trial.configuration))
        return
    measured, answer = study.signed(best.trial.objective), answer_of(study, service.trials(arguments.study))
    if arguments.json:
        facts = {"configuration": best.trial.configuration, "objective": measured, "unit": study.unit}
        [shown] = as_measured(study, [best])
        say_json({**facts, "trial": shown.as_nested_json(), "answer": answer_json(answer)})
        return
    say(f"{study.objective} {with_unit(study, measured)} (trial {best.trial_id})")
    say("\n".join(f"{name} = {text_of(value)}" for name, value in best.trial.configuration.items()))
    _say_limits(overview)
    if len(overview.front) > 1:
        say("of these no other is better in every objective:")
        say(trial_table(as_measured(study, overview.front)))
    else:
        say(answer_words(study, best, answer))


def _say_limits(overview: StudyStatus) -> None:
    if overview.outside:
        say(f"{overview.outside} finished trials exceed a limit: none of them is the best")
    if overview.unjudged:
        say(f"of {overview.unjudged} finished trials the outcomes do not tell every objective and limit")


def _formatted(form: str, configuration: Configuration) -> str:
    if form != "env":
        return config_text(f".{form}", configuration)
    return "".join(f"export {name}={shlex.quote(text)}\n" for name, text in variables(configuration, {}).items())


def _export(arguments: argparse.Namespace, service: StudyService) -> None:
    study, records = service.status(arguments.study).study, service.trials(arguments.study)
    if arguments.format in OTHERS:
        module, function = OTHERS[arguments.format]
        write = getattr(import_module(f"crosswind.models.tuner.exports.{module}"), function)
        sys.stdout.write(write(study, records))
    elif arguments.json or arguments.format == "json":
        say_json([_row(study, record) for record in records])
    else:
        sys.stdout.write(_csv([_row(study, record) for record in records]))


def _row(study: Study, record: TrialRecord) -> dict[str, object]:
    """A trial in one line: its parameters by name, its outcomes, and the objective under the study's name for it."""
    fields = record.as_json()
    objective = None if record.trial.objective is None else study.signed(record.trial.objective)
    return {
        **{name: fields[name] for name in FACTS},
        **record.trial.configuration,
        **fields["outcomes"],
        study.objective: objective,
    }


def _csv(rows: Sequence[dict[str, object]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row)) or list(FACTS)
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: str(value).lower() if isinstance(value, bool) else value for name, value in row.items()})
    return text.getvalue()
