"""Processor time of one solve, in a process of its own that the kernel ends at its limit."""

import json
import os
import resource
import signal
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import thread_time

import numpy as np

from benchmarks.tuning_solvers.grids import Matrix
from benchmarks.tuning_solvers.variants import TOLERANCE, Vector

MEMORY_BYTES = 3 << 30
RESIDUAL_MAX = 2 * TOLERANCE  # a method's own estimate of its residual may be off by rounding
REPEATS = 3


@dataclass(frozen=True)
class Outcome:
    """Result of a solve: its processor seconds with set-up, or None with the reason why it has no solution."""

    seconds: float | None
    reason: str = ""


@dataclass(frozen=True)
class Limits:
    """Seconds after which a solve is given up, and from which on it is too slow to be worth a second measurement."""

    give_up_seconds: float
    repeat_seconds: float


def timed(solve: Callable[[Matrix, Vector], Vector], matrix: Matrix, right: Vector, limits: Limits) -> Outcome:
    """The least of up to REPEATS solves, in a forked child; beyond the limit it is `limit`.

    A running profile timer makes the kernel tell a process' time by whole ticks, but not a thread's.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _measure_and_leave(solve, (matrix, right), limits, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        lines = pipe.read().splitlines()
    os.waitpid(child, 0)
    return Outcome(**json.loads(lines[-1])) if lines else Outcome(None, "limit")


def _measure_and_leave(
    solve: Callable[[Matrix, Vector], Vector], system: tuple[Matrix, Vector], limits: Limits, writing: int
) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    best = float("inf")
    for _ in range(REPEATS):
        signal.setitimer(signal.ITIMER_PROF, limits.give_up_seconds)
        seconds, reason = _once(solve, *system)
        signal.setitimer(signal.ITIMER_PROF, 0)
        best = min(best, seconds)
        outcome = {"seconds": None, "reason": reason} if reason else {"seconds": best}
        os.write(writing, json.dumps(outcome).encode() + b"\n")
        if reason or seconds > limits.repeat_seconds:
            break
    os._exit(0)


def _once(solve: Callable[[Matrix, Vector], Vector], matrix: Matrix, right: Vector) -> tuple[float, str]:
    before = thread_time()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            solution = solve(matrix, right)
    except Exception as error:  # noqa: BLE001 - a variant may fail in any way: that is what is measured
        return thread_time() - before, type(error).__name__
    seconds = thread_time() - before
    residual = float(np.linalg.norm(right - matrix @ solution) / np.linalg.norm(right))
    return seconds, "" if residual <= RESIDUAL_MAX else "residual"
