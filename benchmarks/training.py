"""Features and trees of every run of a store, on local Dask workers of limited memory.

python -m benchmarks.training HOME [--workers 2] [--memory 2GiB] [--outcome run_seconds]
"""

import argparse
import resource
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from crosswind.data.schema.answers.predictions import Outcome
from crosswind.data.store.store import Store
from crosswind.models.training.cluster.connect import LOCAL, ClusterOptions, connected
from crosswind.models.training.cluster.train import Report, features_of, trees_of


@dataclass(frozen=True)
class TrainingFigures:
    """Runs learned from, seconds of both parts, CPU of all workers and of the client, and the largest resident memory
    of any worker and of the client."""

    runs: int
    partitions: int
    features_seconds: float
    trees_seconds: float
    workers_cpu_seconds: float
    client_cpu_seconds: float
    worker_bytes: int
    client_bytes: int
    restarts: int  # workers that were lost, as for memory


def measure_training(
    home: Path, outcome: Outcome = Outcome.RUN, *, workers: int = 2, memory: str = "2GiB"
) -> TrainingFigures:
    """Describe every run of the store below `home` and learn trees of them; nothing is written to the store."""
    options = ClusterOptions(workers, memory)
    with Store.open(home) as store, connected(LOCAL, options) as client:
        client.wait_for_workers(workers)
        before = set(client.scheduler_info(n_workers=-1)["workers"])
        began = time.monotonic()
        every = features_of(client, store, outcome, report=Report())
        described = time.monotonic()
        trees = trees_of(every, None, Report())
        ended = time.monotonic()
        used, largest = client.run(time.process_time), client.run(peak_bytes)
        lost = len(before - set(client.scheduler_info(n_workers=-1)["workers"]))
    times = (described - began, ended - described, sum(used.values()), time.process_time())
    return TrainingFigures(
        trees.rows if trees else 0, len(every.frames), *times, max(largest.values()), peak_bytes(), lost
    )


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="2GiB")
    parser.add_argument("--outcome", type=Outcome, default=Outcome.RUN, choices=list(Outcome))
    given = parser.parse_args()
    figures = measure_training(given.home, given.outcome, workers=given.workers, memory=given.memory)
    for name, value in asdict(figures).items():
        print(f"{name:18} {value:,.0f}")


if __name__ == "__main__":
    main()
