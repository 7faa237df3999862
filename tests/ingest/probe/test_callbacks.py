"""Our callbacks, called as frameworks call them; tests/ingest/probe/adapters trains with the frameworks themselves."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.ingest.descriptors import open_files
from tests.ingest.spooled import records, rows

import crosswind
import crosswind.keras
from crosswind.ingest.probe.callbacks.keras import KerasHooks


def step(hooks: KerasHooks, number: int, logs: object = None) -> None:
    hooks.on_train_batch_begin(number)
    hooks.on_train_batch_end(number, logs)  # type: ignore[arg-type]


def train(hooks: KerasHooks, steps: int) -> None:
    hooks.on_train_begin()
    for number in range(steps):
        step(hooks, number)


def states(spool: Path) -> list[tuple[object, object]]:
    return [(record["run_id"], record["state"]) for record in records(spool, "run")]


def test_a_loss_that_is_no_number_is_said_and_the_steps_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with crosswind.run(spool=tmp_path, run_id="r1") as run:
        hooks = KerasHooks(run)
        hooks.on_train_begin()
        for number, loss in enumerate([0.5, "none at all", None]):
            step(hooks, number, {"loss": loss})
        hooks.on_train_end()
    assert rows(tmp_path, "step")["step"].tolist() == [0, 1, 2]
    assert rows(tmp_path, "progress")[["step", "value"]].values.tolist() == [[0, 0.5]]
    assert [message.partition(":")[0] for message in caplog.messages] == ["crosswind does not record these values"] * 2


def test_what_we_do_not_understand_ends_the_notes_of_that_training_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    not_understood = 5
    with crosswind.run(spool=tmp_path, run_id="r1") as run:
        hooks = KerasHooks(run)
        train(hooks, 1)
        step(hooks, 1, not_understood)
        step(hooks, 2, not_understood)
        hooks.on_train_end()
        train(hooks, 2)
        hooks.on_train_end()
    assert rows(tmp_path, "step")["step"].tolist() == [0, 1, 2]
    [message] = caplog.messages
    assert message.startswith("crosswind stops watching this training: ")


def test_without_a_training_nothing_is_opened_and_nothing_fails(tmp_path: Path) -> None:
    before = open_files()
    hooks = KerasHooks(spool=tmp_path)
    hooks.on_test_begin()
    hooks.on_test_end()
    hooks.on_train_end()
    assert not open_files() - before
    assert list(tmp_path.iterdir()) == []


def test_an_option_that_no_run_has_is_refused_where_it_is_written() -> None:
    with pytest.raises(TypeError, match="wrokload"):
        KerasHooks(wrokload="regression")


def test_the_time_after_a_training_that_failed_is_in_no_step_of_the_next_one(tmp_path: Path) -> None:
    with crosswind.run(spool=tmp_path, run_id="r1") as run:
        hooks = KerasHooks(run)
        train(hooks, 1)
        time.sleep(0.5)
        train(hooks, 1)
        hooks.on_train_end()
    assert rows(tmp_path, "step")["step"].tolist() == [0, 1]
    assert rows(tmp_path, "step")["duration_seconds"].max() < 400_000_000


def test_a_training_that_begins_again_without_an_end_has_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_RUN_ID", "begun-again")
    hooks = KerasHooks(spool=tmp_path)
    for _ in range(2):
        train(hooks, 1)
    hooks.on_train_end()
    assert sorted(states(tmp_path)) == [
        ("begun-again", "failed"),
        ("begun-again", "running"),
        ("begun-again-part2", "completed"),
        ("begun-again-part2", "running"),
    ]


PROGRAM = """
import os, sys
from crosswind.ingest.probe.callbacks.keras import KerasHooks
hooks = KerasHooks(run_id="r1")
hooks.on_train_begin()
hooks.on_train_batch_begin(0)
if os.fork() == 0:
    sys.exit(0)
os.wait()
hooks.on_train_batch_end(0)
"""


@pytest.mark.parametrize(("end", "state"), [("hooks.on_train_end()", "completed"), ("", "failed")])
def test_a_program_that_ends_within_a_training_has_failed_and_a_fork_ends_nothing(
    tmp_path: Path, end: str, state: str
) -> None:
    environment = os.environ | {"CROSSWIND_SPOOL": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + end], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert states(tmp_path) == [("r1", "running"), ("r1", state)]
    assert rows(tmp_path, "step")["step"].tolist() == [0]


def test_a_name_that_a_frameworks_module_does_not_have_is_said() -> None:
    with pytest.raises(AttributeError, match=r"module 'crosswind\.keras' has no attribute 'Callback'"):
        _ = crosswind.keras.Callback
