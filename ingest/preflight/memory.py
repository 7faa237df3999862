"""Memory bandwidth: the triad of STREAM."""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import median
from typing import ClassVar

from crosswind.data.schema.checks import Measured
from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.preflight.measure import Bench, cores, processor

ARRAY_BYTES = 256 * 1024 * 1024  # three of them must fit into a job's memory
SCALAR = 3.0
PASSES = 5  # words moved per element: c, a; a, b, a


@dataclass(frozen=True)
class Memory:
    """a = b + 3 c over arrays of 64-bit numbers, a thread per core; the median of the sweeps that fit into the time.

    NumPy needs two passes, so five words move per element rather than STREAM's three, and five are counted; the reads
    before writes (write-allocate) are not, as in STREAM. A cache larger than the arrays flatters the result.
    Source: McCalpin 1995, "Memory bandwidth and machine balance in current high performance computers".
    """

    name: ClassVar[str] = "memory"
    weight: ClassVar[float] = 1.0
    array_bytes: int = ARRAY_BYTES

    def measure(self, bench: Bench) -> Iterator[Measured]:
        """Yield bytes/s of the whole node. Raises: UnavailableError, MemoryError."""
        if not find_spec("numpy"):
            raise UnavailableError("memory needs numpy: pip install numpy")
        threads = cores()
        length = self.array_bytes // 8 // threads
        times = _swept(length, bench.seconds)
        moved = PASSES * 8 * length * threads
        method = f"numpy triad {self.array_bytes >> 20} MiB threads={threads}"
        yield Measured(bench.node, self.name, moved / median(times), "cpu", method=method, hardware=processor())


def _swept(length: int, seconds: float) -> list[float]:
    """Return seconds of each sweep of all cores together, after one to warm up."""
    allowed = sorted(os.sched_getaffinity(0))
    gate, is_over = threading.Barrier(len(allowed) + 1), threading.Event()
    times: list[float] = []
    with ThreadPoolExecutor(len(allowed)) as pool:
        workers = [pool.submit(_sweep, core, length, gate, is_over) for core in allowed]
        with suppress(threading.BrokenBarrierError):  # the worker's own error is raised below
            ends = time.perf_counter() + seconds
            while len(times) < 2 or time.perf_counter() < ends:
                gate.wait()
                began = time.perf_counter()
                gate.wait()
                times.append(time.perf_counter() - began)
            is_over.set()
            gate.wait()
    _raise_first([worker.exception() for worker in workers])
    return times[1:]


def _raise_first(errors: Sequence[BaseException | None]) -> None:
    """Raise the error that broke one worker, rather than the broken barriers of the others."""
    for error in errors:
        if error is not None and not isinstance(error, threading.BrokenBarrierError):
            raise error


def _sweep(core: int, length: int, gate: threading.Barrier, is_over: threading.Event) -> None:
    """Do one core's part: its thread stays on it, and touches its arrays first, so that they are in its own memory."""
    import numpy as np  # noqa: PLC0415 - no heavy import during a job before it is needed

    try:
        os.sched_setaffinity(0, {core})  # of this thread, which ends with the measure
        a, b, c = (np.full(length, value) for value in (0.0, 1.0, 2.0))
        gate.wait()
        while not is_over.is_set():
            np.multiply(c, SCALAR, out=a)
            np.add(a, b, out=a)
            gate.wait()
            gate.wait()
    except BaseException:
        gate.abort()
        raise
