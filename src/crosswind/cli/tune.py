"""`crosswind tune`: studies from a job script: create, suggest, complete, fail, status."""

import argparse
import json
import os
import time
from pathlib import Path

from crosswind.cli.output import say, say_json, table
from crosswind.data.catalog.leases import TrialRecord
from crosswind.data.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.run import new_ulid
from crosswind.data.store import Store
from crosswind.data.trial import Study, TrialState
from crosswind.ingest.probe.place import job_id, node_name
from crosswind.models.tuner import GaussianProcessTuner
from crosswind.models.tuner.desk import Lease, StudyDesk
from crosswind.settings import Settings

ACTIONS = ("create", "suggest", "complete", "fail", "release", "status")
LEASE_SECONDS = 24 * 3600.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the verb's arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = _action(actions, "create", "a study over the space that a JSON file describes", trial=False)
    create.add_argument("space", type=Path, help='such as {"threads": {"kind": "ordinal", "values": [1, 2]}}')
    create.add_argument("--objective", default="step_p50_seconds", help="what is measured; lower is better")
    create.add_argument("--unit", default="s")
    create.add_argument("--seed", type=int, default=0)
    suggest = _action(actions, "suggest", "leases the next configuration", trial=False)
    suggest.add_argument("--count", type=int, default=1)
    suggest.add_argument("--lease", type=float, default=LEASE_SECONDS, metavar="SECONDS")
    complete = _action(actions, "complete", "tells a trial's objective", trial=True)
    complete.add_argument("objective", type=float)
    fail = _action(actions, "fail", "ends a trial without an objective", trial=True)
    fail.add_argument("--reason", default="failed")
    _action(actions, "release", "gives a trial back, unmeasured", trial=True)
    _action(actions, "status", "every trial, and the best so far", trial=False)


def _action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, help_text: str, *, trial: bool
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=help_text, description=f"{help_text}.")
    parser.add_argument("study", help="the study's name or id")
    if trial:
        parser.add_argument("trial", help="the trial's id")
    # Suppressed, so that its absence here does not undo a --json before the action.
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON for machines")
    return parser


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Does the action."""
    with Store.open(settings.home, database=settings.database) as store:
        desk = StudyDesk(store.catalog, make_tuner=GaussianProcessTuner)
        if arguments.action == "create":
            _create(desk, arguments)
        elif arguments.action == "status":
            _status(desk, arguments)
        else:
            _tell(_changed(desk, arguments), as_json=arguments.json)
    return 0


def _create(desk: StudyDesk, arguments: argparse.Namespace) -> None:
    study = Study(
        study_id=new_ulid(),
        name=arguments.study,
        space=_read_space(arguments.space),
        objective=arguments.objective,
        unit=arguments.unit,
        seed=arguments.seed,
        created_ns=time.time_ns(),
    )
    desk.create(study)
    if arguments.json:
        say_json(study)
    else:
        say(f"study {study.name} is {study.study_id}; next: crosswind tune suggest {study.name} --json")


def _changed(desk: StudyDesk, arguments: argparse.Namespace) -> list[TrialRecord]:
    study = arguments.study
    match arguments.action:
        case "suggest":
            return desk.suggest(study, arguments.count, Lease(_owner(), arguments.lease))
        case "complete":
            return [desk.complete(study, arguments.trial, arguments.objective)]
        case "fail":
            return [desk.fail(study, arguments.trial, arguments.reason)]
        case _:
            return [desk.release(study, arguments.trial)]


def _status(desk: StudyDesk, arguments: argparse.Namespace) -> None:
    records, best = desk.trials(arguments.study), desk.best(arguments.study)
    if arguments.json:
        say_json({"trials": records, "best": best})
        return
    _tell(records, as_json=False)
    done = sum(record.trial.state is TrialState.DONE for record in records)
    say(
        f"{done} of {len(records)} trials done"
        + (f"; best {best.objective:.6g}: {_words(best.configuration)}" if best else "")
    )


def _tell(records: list[TrialRecord], *, as_json: bool) -> None:
    if as_json:
        say_json(records)
        return
    rows = [
        (
            trial.trial_id,
            trial.state,
            "-" if trial.objective is None else f"{trial.objective:.6g}",
            _words(trial.configuration),
        )
        for trial in (record.trial for record in records)
    ]
    say(table(("trial", "state", "objective", "configuration"), rows))


def _words(configuration: object) -> str:
    return json.dumps(configuration)


def _owner() -> str:
    """Who asks: the job where there is one, so that its restart is known as the same."""
    job = job_id()
    return f"job {job}" if job else f"{node_name()} {os.getppid()}"


def _read_space(path: Path) -> dict[str, dict[str, object]]:
    try:
        space = json.loads(path.read_text())
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise MalformedError(f"{path}: expected JSON: {error}") from error
    if not isinstance(space, dict):
        raise InvalidInputError(f"{path}: expected an object of parameters, found {type(space).__name__}")
    return space
