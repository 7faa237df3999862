import threading
import time
from pathlib import Path

import pytest
from tests.models.registry.models import train
from tests.waiting import until

from crosswind.api.background import background
from crosswind.data.schema.operation import Operation, OperationState
from crosswind.data.store.store import Store
from crosswind.models.registry.trainer import Trained, Trainer
from crosswind.models.training.operations import Runner


def state(store: Store, operation: Operation) -> OperationState:
    with store.catalog.read() as session:
        return session.operations.get(operation.operation_id).state


def test_what_is_asked_for_is_trained_while_a_server_serves(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        runner = Runner(store, {"step-time": Trainer(train)})
        with background(runner, pause_seconds=0.01):
            operation = runner.ask("step-time")
            until(lambda: state(store, operation) is OperationState.DONE)
        assert runner.registry.load("step-time").record.version == 1


def promoted(store: Store, name: str) -> bool:
    with store.catalog.read() as session:
        return session.models.promoted(name) is not None


def test_what_is_due_is_asked_for_by_itself(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        runner = Runner(store, {"step-time": Trainer(train, every_seconds=3600)})
        with background(runner, pause_seconds=0.01, look_seconds=0.0):
            until(lambda: promoted(store, "step-time"))
            time.sleep(0.1)
        with store.catalog.read() as session:
            assert len(session.operations.find("train")) == 1


def test_one_models_trouble_is_logged_once_and_stops_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    watched = Trainer(train, later_runs=lambda *_: None)
    with Store.open(tmp_path) as store:
        trainers = {"a": watched, "b": Trainer(train, every_seconds=3600)}
        runner = Runner(store, trainers)
        runner.ask("a")
        runner.run_next()
        path = store.home / "models" / "a" / "1.cwm"
        path.unlink()
        with background(Runner(store, trainers), pause_seconds=0.01, look_seconds=0.0):  # nothing in its memory
            until(lambda: promoted(store, "b"))
            time.sleep(0.1)
    [message] = caplog.messages
    assert message == f"{path} cannot be read: No such file or directory"


def test_a_training_that_is_not_done_when_the_server_ends_is_given_back(tmp_path: Path) -> None:
    def slow(_: Store) -> Trained:
        time.sleep(3)
        return train(_)

    with Store.open(tmp_path) as store:
        runner = Runner(store, {"step-time": Trainer(slow)})
        operation = runner.ask("step-time")
        with background(runner, pause_seconds=0.01):
            until(lambda: state(store, operation) is OperationState.RUNNING)
        assert state(store, operation) is OperationState.WAITING
        time.sleep(3)  # the thread that goes on registers nothing
        with store.catalog.read() as session:
            assert session.models.all() == []


def test_a_server_ends_in_good_order_while_its_database_is_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trained_on = threading.Event()

    def slow(store: Store) -> Trained:
        trained_on.wait(60)
        return train(store)

    with Store.open(tmp_path) as store:
        runner = Runner(store, {"step-time": Trainer(slow)})
        operation = runner.ask("step-time")
        with background(runner, pause_seconds=0.01):
            until(lambda: state(store, operation) is OperationState.RUNNING)
            store.close()
            (tmp_path / "catalog.sqlite").rename(tmp_path / "away")
            (tmp_path / "catalog.sqlite").mkdir()
    assert "a training was not given back" in caplog.text
    trained_on.set()
