"""Cost of the probe: a step of DDP with it and without it, an event in it, and its memory.

Two ranks train by DDP over gloo, one a core, in short blocks that go A B B A: without, with, with, without a watcher.
Each such turn is one pair; given are the mean and the median of the pairs with their 95 % intervals, of wall time, of
processor time and of the middle one of a block's steps, which other programs on the machine disturb less, and what the
probe's writer takes of processor time. The peer is PyTorch's own profiler (CPU activity, its cheapest use).
"""

import json
import os
import platform
import subprocess
import sys
import tempfile

PAIRS = os.environ.get("PAIRS", "36")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        torchrun = (
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            "2",
            "-m",
            "benchmarks.probe_ranks",
        )
        names = os.environ | {"OMP_NUM_THREADS": "1", "CROSSWIND_SPOOL": folder, "PAIRS": PAIRS}
        done = subprocess.run(torchrun, env=names, stdout=subprocess.PIPE, text=True, check=True)
    *report, figures = [line for line in done.stdout.splitlines() if not line.startswith("USDT")]
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print("\n".join(report))
    print(json.dumps(json.loads(figures) | {"machine": machine}))


if __name__ == "__main__":
    main()
