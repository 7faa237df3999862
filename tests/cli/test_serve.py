"""`crosswind serve` as a process that is asked to end."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.models.registry.models import train
from tests.serving import serving
from tests.waiting import until

from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.schema.operation import Operation, OperationState
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.models.registry.trainer import Trainer
from crosswind.models.training.operations import Runner

NAME = str(Outcome.RUN)
RUNS = 8000  # whose model takes several times INSIDE_SECONDS
HOUR_NS = 3_600_000_000_000
INSIDE_SECONDS = 1.0  # from a training's begin, until it has read its runs and is within XGBoost
END_SECONDS = 8.0  # 5 for open connections, 1 for the training, 2 for compaction


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Runs in plenty, and a training that is asked for."""
    with Store.open(tmp_path / "home") as opened:
        with opened.catalog.write() as session:
            for number in range(RUNS):
                session.runs.merge(run(number))
        yield opened


def run(number: int) -> Run:
    """Between 60 and 109 s, an hour after the one before."""
    configuration = {"batch": 2 ** (number % 7), "depth": number % 11, "fused": number % 3 == 0}
    started = number * HOUR_NS
    ended = started + (60 + number * 7919 % 50) * 1_000_000_000
    names, world_size = (f"r{number}", "gpt", "lab", RunState.COMPLETED), 2 ** (number % 5)
    return Run(*names, world_size=world_size, configuration=configuration, started_ns=started, ended_ns=ended)


def operation(store: Store, operation_id: str) -> Operation:
    with store.catalog.read() as session:
        return session.operations.get(operation_id)


@pytest.mark.thorough
def test_a_server_asked_to_end_in_mid_training_ends_well_and_leaves_it_to_the_next(
    store: Store, tmp_path: Path
) -> None:
    runner, uds = Runner(store, {NAME: Trainer(train)}), tmp_path / "uds"
    asked = runner.ask(NAME)
    with serving(store.home, "--uds", str(uds), stderr=subprocess.PIPE) as (url, process):
        assert url == f"unix://{uds}"
        until(lambda: operation(store, asked.operation_id).state is OperationState.RUNNING)
        time.sleep(INSIDE_SECONDS)
        process.send_signal(signal.SIGTERM)
        signalled = time.monotonic()
        _, complaint = process.communicate(timeout=60)
        assert (process.returncode, complaint) == (0, "")
        assert time.monotonic() - signalled < END_SECONDS
    assert not uds.exists()
    left = operation(store, asked.operation_id)
    assert (left.state, left.owner, left.attempts) == (OperationState.WAITING, None, 0)
    done = runner.run_next()
    assert done is not None
    assert (done.operation_id, done.state, done.attempts) == (asked.operation_id, OperationState.DONE, 1)
