"""Training on features of many runs with two local Dask workers of 2 GiB each."""

import os
from dataclasses import asdict
from pathlib import Path

from benchmarks.many_runs import fill
from benchmarks.training import measure_training
from crosswind.data.store.store import Store

RUNS = int(os.environ.get("CROSSWIND_BENCH_TRAINED_RUNS", "1000000"))


def figures(folder: Path) -> dict[str, object]:
    """Return seconds, processor time and memory of the training."""
    with Store.open(folder / "store") as store:
        fill(store, RUNS)
    return {f"training_{name}": value for name, value in asdict(measure_training(folder / "store")).items()}
