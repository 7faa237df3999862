"""Observations, for tests, of faults at work and of the processes behind them."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from crosswind.ingest.lab.injectors import INJECTORS, Target


def first_core() -> int:
    return min(os.sched_getaffinity(0))


@contextmanager
def at_work(kind: str, target: Target, strength: float) -> Iterator[None]:
    """The fault, there while this lasts."""
    injector = INJECTORS[kind]()
    injector.start(target, strength)
    try:
        yield
    finally:
        injector.stop()


def over(counter: Callable[[], float], seconds: float) -> tuple[float, float]:
    """By how much a counter grows while this time passes, and how long it really was."""
    begin, before = time.monotonic(), counter()
    time.sleep(seconds)
    return counter() - before, time.monotonic() - begin


def used_seconds(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def running_companions() -> list[int]:
    """Children of this process that are at work for a lab."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [int(pid) for pid in children if "companion" in Path(f"/proc/{pid}/cmdline").read_text()]


def alive(pids: list[int]) -> list[int]:
    living = []
    for pid in pids:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                living.append(pid)
        except FileNotFoundError:
            continue
    return living
