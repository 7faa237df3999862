"""By how much the agent slows a real training job, with a confidence interval.

Two ranks train by DDP over gloo, one a core. Beside them an agent is held (SIGSTOP) and let go (SIGCONT) in the order
A B B A, so that a drifting machine hits both alike; each such turn is one pair. For scale, the same is done with
prometheus-node-exporter, which is scraped once a second while it may run.
"""

import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

from benchmarks.agent import AGENT, EXPORTER, node_exporter, program
from crosswind.ingest.spool.spool import RowsFrame, read_segment

PAIRS = int(os.environ.get("PAIRS", "25"))
BLOCK_SECONDS = 2.0
SETTLE_SECONDS = 0.2  # at the start of a block, whose steps do not count
STEPS_PER_SECOND = 60  # more than this machine makes: the job is ended when all is measured
T_95 = 1.96
Block = tuple[bool, int, int]  # whether the watcher ran, from, to


def main() -> None:
    figures: dict[str, object] = {"pairs": PAIRS, "block_seconds": BLOCK_SECONDS}
    for name in ("agent", "node_exporter") if shutil.which(EXPORTER) else ("agent",):
        with tempfile.TemporaryDirectory() as folder:
            slowdowns = measured(Path(folder), name)
        mean = statistics.mean(slowdowns)
        half = T_95 * statistics.stdev(slowdowns) / math.sqrt(len(slowdowns))
        print(f"{name:<14} slows the job by {mean:+.3%}, 95 % interval {mean - half:+.3%} to {mean + half:+.3%}")
        figures |= {f"{name}_slowdown": round(mean, 5), f"{name}_slowdown_half_interval": round(half, 5)}
    print(json.dumps(figures))


def measured(folder: Path, watcher: str) -> list[float]:
    with ExitStack() as stack:
        job = stack.enter_context(training(folder / "job"))
        pid, poke = stack.enter_context(watching(watcher, folder))
        wait_for_steps(folder / "job")
        blocks = [block for _ in range(PAIRS) for block in turn(pid, poke)]
        os.kill(pid, signal.SIGCONT)
        job.terminate()
        job.wait(60)
    return slowdowns_of(blocks, steps(folder / "job"))


def turn(pid: int, poke: threading.Event) -> list[Block]:
    """One pair: a block without the watcher, two with it, one without."""
    blocks = []
    for is_running in (False, True, True, False):
        os.kill(pid, signal.SIGCONT if is_running else signal.SIGSTOP)
        poke.set() if is_running else poke.clear()
        begin = time.time_ns()
        time.sleep(BLOCK_SECONDS)
        blocks.append((is_running, begin + round(SETTLE_SECONDS * 1e9), time.time_ns()))
    return blocks


def slowdowns_of(blocks: list[Block], step_times: list[tuple[int, float]]) -> list[float]:
    """For each pair the median step time with the watcher over that without it, less one."""
    medians = [
        statistics.median(seconds for at, seconds in step_times if begin <= at < end) for _, begin, end in blocks
    ]
    return [
        (medians[first + 1] + medians[first + 2]) / (medians[first] + medians[first + 3]) - 1
        for first in range(0, len(blocks), 4)
    ]


def steps(spool: Path) -> list[tuple[int, float]]:
    """Start and seconds of every step of rank 0."""
    step_times = []
    for path in sorted([*spool.glob("*.segment"), *spool.glob("*.open")]):
        for frame in read_segment(path):
            if isinstance(frame, RowsFrame) and frame.metric_set.name == "step":
                columns = (frame.columns[name] for name in ("ts_ns", "duration_seconds", "rank"))
                step_times += [
                    (int(at), duration * 1e-9) for at, duration, rank in zip(*columns, strict=True) if rank == 0
                ]
    return step_times


def training(spool: Path) -> AbstractContextManager["subprocess.Popen[bytes]"]:
    wanted = round((PAIRS * 4 * BLOCK_SECONDS + 120) * STEPS_PER_SECOND)
    os.environ["CROSSWIND_SPOOL"] = str(spool)
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29517")
    return program((*torchrun, "-m", "crosswind.ingest.lab.train", "--steps", str(wanted)))


def wait_for_steps(spool: Path) -> None:
    until = time.monotonic() + 120
    while not steps(spool):
        if time.monotonic() > until:
            raise SystemExit("the job made no step in two minutes")
        time.sleep(1)
    time.sleep(3)


@contextmanager
def watching(name: str, folder: Path) -> Iterator[tuple[int, threading.Event]]:
    """The watcher's pid, and the event that lets the exporter be scraped."""
    poke = threading.Event()
    if name == "agent":
        command = (*AGENT, "--spool", str(folder / "agent"), "--run-dir", str(folder / "job"))
        with program(command) as agent:
            yield agent.pid, poke
        return
    with node_exporter() as (pid, url):
        threading.Thread(target=scrape, args=(url, poke), daemon=True).start()
        yield pid, poke


def scrape(url: str, poke: threading.Event) -> None:
    while True:
        poke.wait()
        with suppress(OSError), urllib.request.urlopen(url, timeout=2) as answer:
            answer.read()
        time.sleep(1)


if __name__ == "__main__":
    main()
