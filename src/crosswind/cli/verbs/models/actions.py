"""Actions of `crosswind models`: lists of models and their versions, promotion, rollback, training."""

import argparse
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from crosswind.cli.progress import Progress, stopwatch
from crosswind.cli.text.output import say, say_json, table
from crosswind.cli.verbs.models import USAGE
from crosswind.client.installed_store import open_store
from crosswind.dashboards.wording import NONE, percent, utc
from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.model import ModelRecord, ModelState
from crosswind.data.schema.operation import Operation, OperationState
from crosswind.data.store.store import Store
from crosswind.models.registry.evidence import skill_of
from crosswind.models.registry.registry import Registry
from crosswind.models.registry.trainer import Trainer
from crosswind.models.training.operations import TRAIN, Runner
from crosswind.models.training.trainers import TRAINERS
from crosswind.settings import Settings

HEADINGS = ("model", "version", "state", "made", "rows", "validated", "loss", "best baseline", "skill", "note")
FAILED = 1


def execute(arguments: argparse.Namespace, settings: Settings) -> int:
    """Lists models, or changes one."""
    _check_cluster(arguments)
    with open_store(settings) as store:
        match arguments.words:
            case []:
                _list(_all(store), as_json=arguments.json)
            case [name]:
                _list(_versions(store, name), as_json=arguments.json)
            case ["promote", name, version]:
                promoted = Registry(store).promote(name, _number(version), forced_because=arguments.because)
                _print(promoted, "answers now", as_json=arguments.json)
            case ["rollback", name]:
                back = Registry(store).rollback(name, arguments.because or "")
                _print(back, "answers again", as_json=arguments.json)
            case ["train", name] if arguments.cluster is not None:
                return train_on_cluster(store, name, arguments)
            case ["train", name]:
                return train(store, name, as_json=arguments.json)
            case words:
                raise InvalidInputError(f"models {' '.join(words)[:80]}: expected {USAGE}")
    return 0


def _check_cluster(arguments: argparse.Namespace) -> None:
    if arguments.cluster is not None and arguments.words[:1] != ["train"]:
        raise InvalidInputError(f"--cluster {arguments.cluster!r:.100}: expected with train NAME alone")
    if arguments.leave_out_damaged and arguments.cluster is None:
        raise InvalidInputError("--leave-out-damaged: expected with --cluster alone")


def train_on_cluster(store: Store, name: str, arguments: argparse.Namespace) -> int:
    """Train a new version on a Dask cluster; return the process's exit code. Raises: UnavailableError without Dask."""
    try:
        from crosswind.models.training.cluster.train import ClusterTraining  # noqa: PLC0415 - heavy, and an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("dask", "distributed"):
            raise
        raise UnavailableError("--cluster needs Dask: pip install 'crosswind[dask]'") from error
    from crosswind.models.training.cluster.connect import ClusterOptions, check_place  # noqa: PLC0415 - as above

    check_place(arguments.cluster)
    options = ClusterOptions.from_environment()
    training = ClusterTraining(arguments.cluster, options, arguments.leave_out_damaged)
    trainers = {
        own: replace(trainer, train=partial(training, outcome=Outcome(own)), progress=lambda: training.report.share)
        for own, trainer in TRAINERS.items()
    }
    code = train(store, name, trainers, as_json=arguments.json, look=training.report.look)
    for one in training.report.left_out:
        sys.stderr.write(f"left out: {one}\n")
    return code


def train(
    store: Store,
    name: str,
    trainers: Mapping[str, Trainer] = TRAINERS,
    *,
    as_json: bool = False,
    look: Callable[[], tuple[float, str]] | None = None,
) -> int:
    """Train a new version now; return the process's exit code. Raises: UnavailableError while another process does.

    If this process is killed, a server or the next such command continues it.
    """
    runner = Runner(store, trainers)
    operation = runner.ask(name)
    shown = (100.0, "%", look) if look else (_usual_seconds(store, name), "s", stopwatch())
    with Progress(f"training {name}", shown[0], unit=shown[1], look=shown[2]):
        done = runner.run_next(operation.operation_id)
    if done is None:
        raise UnavailableError(f"operation {operation.operation_id} trains {name} in another process: wait for it")
    if as_json:
        say_json(done)
    else:
        say(_outcome(name, done))
    return 0 if done.state is OperationState.DONE else FAILED


def _usual_seconds(store: Store, name: str) -> float | None:
    """Return how long the newest training of this model took; None where none is known."""
    with store.catalog.read() as session:
        trainings = [done for done in session.operations.find(TRAIN) if done.arguments["name"] == name]
    spans = ((done.started_ns, done.ended_ns) for done in trainings if done.state is OperationState.DONE)
    return next(((ended - started) * 1e-9 for started, ended in spans if started and ended), None)


def _all(store: Store) -> list[ModelRecord]:
    with store.catalog.read() as session:
        return session.models.all()


def _versions(store: Store, name: str) -> list[ModelRecord]:
    with store.catalog.read() as session:
        return session.models.versions(name)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 2**31):
        raise InvalidInputError(f"version {text[:40]!r}: expected a whole number from 1")
    return int(text)


def _outcome(name: str, done: Operation) -> str:
    if done.state is not OperationState.DONE:
        return f"{name} was not trained: {done.error}"
    made = f"version {done.result['version']} of {name} is {done.result['state']}"
    return f"{made}: {done.result['note']}; next: crosswind models {name}"


def _print(record: ModelRecord, what: str, *, as_json: bool) -> None:
    if as_json:
        say_json(record)
    else:
        say(f"version {record.version} of {record.name} {what}: {record.note}")


def _list(records: list[ModelRecord], *, as_json: bool) -> None:
    if as_json:
        say_json(records)
    elif records:
        say(table(HEADINGS, [_line(record) for record in records]))
    else:
        say("No model is registered yet: crosswind models train NAME makes one.")


def _line(record: ModelRecord) -> tuple[str, ...]:
    evidence = record.evidence
    best = min(evidence.baselines, key=lambda name: evidence.baselines[name], default=None)
    skill = skill_of(evidence)
    return (
        record.name,
        str(record.version),
        f"{record.state} *" if record.state is ModelState.PROMOTED else record.state,
        utc(record.made_ns),
        str(evidence.learned.rows),
        str(evidence.validated_rows),
        f"{evidence.loss:.4g}",
        NONE if best is None else f"{evidence.baselines[best]:.4g} {best}",
        NONE if skill is None else percent(skill),
        record.note[:80] or NONE,
    )
