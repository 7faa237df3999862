"""Cost of the probe: a step of DDP with it and without it, an event in it, and its memory.

Two ranks train by DDP over gloo, one a core, in short blocks that go A B B A: without, with, with, without a watcher.
Each such turn is one pair; given are the mean and the median of the pairs with their 95 % intervals, of wall time, of
processor time and of the middle one of a block's steps, which other programs on the machine disturb less, and what
the probe's writer takes of processor time. `waiting_to_trace` is the probe under `crosswind run --trace auto`,
outside of captured steps; `after_a_capture` compares a rank that has traced with one that has not. The peer is
PyTorch's own profiler (CPU activity, its cheapest use).
"""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from crosswind.data.schema.steps import STEP
from crosswind.ingest.capture.planner import Planner
from crosswind.ingest.capture.wanted import Budget, Wanted
from crosswind.ingest.spool.spool import SpoolWriter

PAIRS = os.environ.get("PAIRS", "36")


def main() -> None:
    figures: dict[str, object] = {}
    for ranks, module in (("2", "benchmarks.probe_ranks"), ("4", "benchmarks.captured_ranks")):
        *report, last = [line for line in printed(ranks, module) if not line.startswith("USDT")]
        print("\n".join(report))
        figures |= json.loads(last)
    figures["planner_us_of_a_rank_step"] = cost = round(planner_us(), 1)
    print(f"planner of captures: {cost} us of processor time for each step of a rank, in the wrapper")
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    print(json.dumps(figures | {"machine": machine}))


def printed(ranks: str, module: str) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", ranks, "-m", module)
        names = os.environ | {"OMP_NUM_THREADS": "1", "CROSSWIND_SPOOL": folder, "PAIRS": PAIRS}
        return subprocess.run(torchrun, env=names, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


def planner_us(ranks: int = 8, steps: int = 1000) -> float:
    """Return the processor time of choosing what to trace, a step of a rank, microseconds."""
    with tempfile.TemporaryDirectory() as folder:
        names = [column.name for column in STEP.columns]
        for rank in range(ranks):
            with SpoolWriter(Path(folder), f"r1-rank{rank}") as writer:
                for begin in range(0, steps, 20):  # as many as a rank writes at once
                    values = {"run_id": ["r1"] * 20, "rank": [rank] * 20, "step": list(range(begin, begin + 20))}
                    values |= {"duration_seconds": [40_000_000] * 20}
                    writer.append_rows(STEP, {name: values.get(name, [0] * 20) for name in names})
        planner = Planner(Path(folder), "r1", Wanted(Budget()))
        begin_seconds = time.process_time()
        planner.look(time.monotonic())
        used = time.process_time() - begin_seconds
        planner.close()
    return 1e6 * used / ranks / steps


if __name__ == "__main__":
    main()
