"""Run by a test as a process: begins a training, says so, and is killed in the middle of it."""

import sys
import time
from pathlib import Path

from crosswind.data.store.store import Store
from crosswind.models.registry.trainer import Trained, Trainer
from crosswind.models.training.operations import Runner


def train_for_ever(_: Store) -> Trained:
    """Never comes back."""
    sys.stdout.write("training\n")
    sys.stdout.flush()
    time.sleep(600)
    raise AssertionError


with Store.open(Path(sys.argv[1])) as store:
    runner = Runner(store, {"step-time": Trainer(train_for_ever)}, lease_seconds=1.0)
    runner.ask("step-time")
    runner.run_next()
