import logging
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.models.registry.models import later_runs, poor, train, trained
from tests.waiting import until

from crosswind.data.schema.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError
from crosswind.data.schema.model import ModelRecord, ModelState
from crosswind.data.schema.operation import OPEN, Operation, OperationState
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.store.store import Store
from crosswind.models.registry.drift import LaterRuns
from crosswind.models.registry.registry import Registry
from crosswind.models.registry.trainer import Trained, Trainer
from crosswind.models.training.operations import TRAINED, Runner

NAME = "step-time"
SECOND = 1_000_000_000
KILLED = Path(__file__).parent / "train_and_be_killed.py"


class Clock:
    """A clock that moves when the test moves it; ns UTC."""

    def __init__(self) -> None:
        self.now_ns = 1_000 * SECOND

    def __call__(self) -> int:
        return self.now_ns


def runner_of(store: Store, trainer: Trainer, **further: object) -> Runner:
    return Runner(store, {NAME: trainer}, **further)  # type: ignore[arg-type]


def operation(store: Store, operation_id: str) -> Operation:
    with store.catalog.read() as session:
        return session.operations.get(operation_id)


def versions(store: Store) -> list[ModelRecord]:
    with store.catalog.read() as session:
        return [record for record in session.models.all() if record.name == NAME]


def test_a_training_registers_a_version_and_promotes_it_if_it_wins(either_store: Store) -> None:
    runner = runner_of(either_store, Trainer(train))
    asked = runner.ask(NAME)
    assert asked.state is OperationState.WAITING
    done = runner.run_next()
    assert done is not None
    assert (done.operation_id, done.state, done.progress) == (asked.operation_id, OperationState.DONE, 1.0)
    assert done.result["version"] == 1
    assert done.result["state"] == "promoted"
    assert Registry(either_store).load(NAME).record.version == 1
    assert runner.run_next() is None


def test_a_training_that_loses_leaves_a_candidate_and_says_why(store: Store) -> None:
    made = trained()
    runner = runner_of(store, Trainer(lambda _: Trained(made.model, poor(made.evidence))))
    runner.ask(NAME)
    done = runner.run_next()
    assert done is not None
    assert (done.state, done.result["state"]) == (OperationState.DONE, "candidate")
    assert "expected less than last's" in str(done.result["note"])


def test_what_a_trainer_raises_ends_the_operation_and_registers_nothing(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(error: Exception) -> Callable[[Store], Trained]:
        def raise_it(_: Store) -> Trained:
            raise error

        return raise_it

    errors = {
        "3 rows, expected 20": InvalidInputError("3 rows, expected 20"),
        "taken": ConflictError("taken"),
        "ZeroDivisionError: by nothing": ZeroDivisionError("by nothing"),
    }
    for message, error in errors.items():
        runner = runner_of(store, Trainer(refuse(error)))
        runner.ask(NAME)
        failed = runner.run_next()
        assert failed is not None
        assert (failed.state, failed.error) == (OperationState.FAILED, message)
    assert versions(store) == []
    assert [record.exc_info is not None for record in caplog.records] == [True]  # only the one nobody foresaw


def test_a_model_that_cannot_be_saved_fails_its_training(store: Store) -> None:
    runner = runner_of(store, Trainer(lambda _: Trained(print, trained().evidence)))
    runner.ask(NAME)
    failed = runner.run_next()
    assert failed is not None
    assert "cannot be saved" in str(failed.error)
    assert versions(store) == []


def test_a_model_without_a_trainer_cannot_be_asked_for(store: Store) -> None:
    with pytest.raises(NotFoundError, match="model 'other' has no trainer: expected step-time"):
        runner_of(store, Trainer(train)).ask("other")
    with pytest.raises(NotFoundError, match="has no trainer: there is none"):
        Runner(store, {}).ask(NAME)
    with pytest.raises(InvalidInputError, match="model name"):
        runner_of(store, Trainer(train)).ask("../x")


def test_the_same_training_is_asked_for_once_until_it_ended(store: Store) -> None:
    runner = runner_of(store, Trainer(train))
    first = runner.ask(NAME)
    assert runner.ask(NAME) == first
    runner.run_next()
    assert runner.ask(NAME).operation_id != first.operation_id


def test_the_same_request_gets_the_same_operation_even_after_it_ended(store: Store) -> None:
    runner, request = runner_of(store, Trainer(train)), RequestKey("k", "f")
    first = runner.ask(NAME, request=request)
    runner.run_next()
    again = runner.ask(NAME, request=request)
    assert (again.operation_id, again.state) == (first.operation_id, OperationState.DONE)


def test_a_training_killed_in_the_middle_is_done_by_the_next(store: Store) -> None:
    command = [sys.executable, str(KILLED), str(store.home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "training\n"
        runner = runner_of(store, Trainer(train))
        [begun] = _all(store)
        assert begun.state is OperationState.RUNNING
        assert runner.run_next() is None  # it is somebody's, and he lives
        time.sleep(1.5)
        assert runner.run_next() is None  # longer than a lease, but he renews it
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while (done := runner.run_next()) is None:
        assert time.monotonic() < deadline, "nobody took it over"
        time.sleep(0.05)
    assert (done.operation_id, done.state, done.attempts) == (begun.operation_id, OperationState.DONE, 2)
    assert [record.version for record in versions(store)] == [1]


def _all(store: Store) -> list[Operation]:
    with store.catalog.read() as session:
        return session.operations.find("train")


def test_who_was_slower_than_his_lease_registers_nothing(either_store: Store) -> None:
    """He sleeps, is taken for dead, and wakes after another has done it."""
    clock = Clock()
    other = runner_of(either_store, Trainer(train), clock=clock)

    def slow(store: Store) -> Trained:
        clock.now_ns += 3600 * SECOND
        assert other.run_next() is not None
        return train(store)

    runner = runner_of(either_store, Trainer(slow), clock=clock)
    asked = runner.ask(NAME)
    assert runner.run_next() is None
    assert operation(either_store, asked.operation_id).state is OperationState.DONE
    assert [record.version for record in versions(either_store)] == [1]


def test_while_a_training_lasts_its_lease_is_renewed(store: Store) -> None:
    def slow(opened: Store) -> Trained:
        [begun] = _all(opened)
        until(lambda: (_all(opened)[0].lease_until_ns or 0) > (begun.lease_until_ns or 0))
        return train(opened)

    runner = runner_of(store, Trainer(slow), lease_seconds=0.5)
    runner.ask(NAME)
    done = runner.run_next()
    assert done is not None
    assert done.state is OperationState.DONE


def test_a_training_that_reports_shows_how_far_it_is(store: Store) -> None:
    def slow(opened: Store) -> Trained:
        until(lambda: _all(opened)[0].progress == pytest.approx(0.5 * TRAINED))
        return train(opened)

    runner = runner_of(store, Trainer(slow, progress=lambda: 0.5), lease_seconds=0.5)
    runner.ask(NAME)
    assert runner.run_next() is not None


def test_what_is_given_back_is_begun_at_once_by_another(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    going_on = threading.Event()

    def wait(opened: Store) -> Trained:
        going_on.wait(60)
        return train(opened)

    stopped = runner_of(store, Trainer(wait))
    asked = stopped.ask(NAME)
    ended: list[Operation | None] = []
    thread = threading.Thread(target=lambda: ended.append(stopped.run_next()))
    thread.start()
    until(lambda: operation(store, asked.operation_id).state is OperationState.RUNNING)
    until(lambda: stopped._current is not None)
    stopped.give_back()
    done = runner_of(store, Trainer(train)).run_next()
    with caplog.at_level(logging.ERROR):
        going_on.set()
        thread.join(60)
    assert done is not None
    assert (done.state, done.attempts, ended) == (OperationState.DONE, 1, [None])
    assert len(versions(store)) == 1


def test_progress_is_told_once_the_model_is_fitted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    class Watching(Registry):
        """Looks at the operation as it is when the version is written."""

        def add(self, *given: object) -> ModelRecord:  # type: ignore[override]
            seen.append(given[0].operations.find("train")[0].progress)  # type: ignore[attr-defined]
            return super().add(*given)  # type: ignore[arg-type]

    runner = runner_of(store, Trainer(train), registry=Watching(store))
    runner.ask(NAME)
    runner.run_next()
    assert seen == [TRAINED]


def test_a_schedule_asks_when_it_is_time_and_not_before(store: Store) -> None:
    clock = Clock()
    runner = runner_of(store, Trainer(train, every_seconds=100), clock=clock)
    first = runner.look_after(NAME)
    assert first is not None
    assert first.result == {"because": "every 100 s"}
    assert runner.look_after(NAME) is None  # it waits
    runner.run_next()
    clock.now_ns += 99 * SECOND
    assert runner.look_after(NAME) is None
    clock.now_ns += SECOND
    second = runner.look_after(NAME)
    assert second is not None
    assert second.state in OPEN


def test_a_schedule_does_not_hammer_a_training_that_fails(store: Store) -> None:
    clock = Clock()

    def fail(_: Store) -> Trained:
        raise InvalidInputError("too few rows")

    runner = runner_of(store, Trainer(fail, every_seconds=100), clock=clock)
    assert runner.look_after(NAME) is not None
    runner.run_next()
    assert runner.look_after(NAME) is None
    clock.now_ns += 100 * SECOND
    assert runner.look_after(NAME) is not None


def test_without_a_schedule_nothing_is_asked_for(store: Store) -> None:
    assert runner_of(store, Trainer(train)).look_after(NAME) is None


def drifting(slower: float) -> Trainer:
    def later(_: Store, __: ModelRecord, model: object) -> LaterRuns | None:
        return later_runs(model, slower=slower)  # type: ignore[arg-type]

    return Trainer(train, later_runs=later)


def test_a_version_that_drifted_is_taken_back_and_made_anew(store: Store) -> None:
    registry, made = Registry(store), trained()
    for version in (1, 2):
        registry.register(NAME, made.model, made.evidence)
        registry.promote(NAME, version)
    asked = runner_of(store, drifting(1.3)).look_after(NAME)
    assert asked is not None
    assert str(asked.result["because"]).startswith("drift: of 60 later runs ")
    second, first = versions(store)
    assert (second.state, second.note) == (ModelState.DEMOTED, asked.result["because"])
    assert first.state is ModelState.PROMOTED


def test_a_version_that_keeps_its_promise_goes_on(store: Store) -> None:
    registry, made = Registry(store), trained()
    registry.register(NAME, made.model, made.evidence)
    registry.promote(NAME, 1)
    assert runner_of(store, drifting(1.0)).look_after(NAME) is None
    assert registry.load(NAME).record.version == 1


def test_a_version_whose_file_is_gone_is_not_watched_silently(store: Store) -> None:
    registry, made = Registry(store), trained()
    registry.register(NAME, made.model, made.evidence)
    registry.promote(NAME, 1)
    (store.home / "models" / NAME / "1.cwm").unlink()
    with pytest.raises(UnavailableError):
        runner_of(store, drifting(1.0)).look_after(NAME)
