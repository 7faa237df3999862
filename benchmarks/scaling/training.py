"""Training on features of many runs with two Dask workers of 2 GB each, by `crosswind models train --cluster`."""

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.cluster.parts import dask
from benchmarks.many_runs import fill
from crosswind.data.store.store import Store

RUNS = int(os.environ.get("CROSSWIND_BENCH_TRAINED_RUNS", "1000000"))
TRAIN = (sys.executable, "-m", "crosswind.cli.main", "models", "train")


def figures(folder: Path) -> dict[str, object]:
    """Return seconds of training; a reason where this version trains in one process only."""
    helped = subprocess.run([*TRAIN, "--help"], capture_output=True, text=True, check=True).stdout
    if "--cluster" not in helped:
        return {"training": "not measured: `crosswind models train` has no --cluster"}
    home = folder / "store"
    with Store.open(home) as store:
        fill(store, RUNS)
    with dask(folder / "dask", environment={"CROSSWIND_HOME": str(home)}) as (address, _):
        begin = time.perf_counter()
        environment = {**os.environ, "CROSSWIND_HOME": str(home)}
        subprocess.run([*TRAIN, "run_seconds", "--cluster", address], env=environment, check=True)
        return {"training_runs": RUNS, "training_seconds": round(time.perf_counter() - begin, 1)}
