"""Somebody else's process, which computes for a while, rests for a while, and so on.

python -m benchmarks.tuning_live.neighbour SEED
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.tuning_live.ranks import REPOSITORY

BUSY_SECONDS, IDLE_SECONDS = 3.0, 4.0  # means of exponential times: about as long as a run


@contextmanager
def neighbour(seed: int) -> Iterator[int]:
    """A neighbour beside the block, by its process id."""
    command = [sys.executable, "-m", "benchmarks.tuning_live.neighbour", str(seed)]
    process = subprocess.Popen(command, cwd=REPOSITORY, start_new_session=True)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Computes and rests until whoever started it is gone."""
    rng, parent = random.Random(int(sys.argv[1])), os.getppid()
    while os.getppid() == parent:
        busy_until = time.monotonic() + rng.expovariate(1 / BUSY_SECONDS)
        while time.monotonic() < busy_until and os.getppid() == parent:
            pass
        time.sleep(rng.expovariate(1 / IDLE_SECONDS))


if __name__ == "__main__":
    main()
