"""Faults that need no root, of known kind, rank and strength.

`cpu_hog` competes for the rank's core, `slow_input` delays its batches, `memory_traffic` has it touch fresh memory in
every step. Each is real: a process that spins, a wait, pages that the kernel has to clear.
"""

import ctypes
import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

from crosswind.data.schema.errors import InvalidInputError

UNITS = {"cpu_hog": "processes", "slow_input": "ms a batch", "memory_traffic": "MiB a step"}
LIMITS = {"cpu_hog": 64.0, "slow_input": 10_000.0, "memory_traffic": 16_384.0}
SPIN = "while True: pass"
PR_SET_PDEATHSIG = 1  # prctl(2)


@dataclass(frozen=True)
class Fault:
    """One disturbance of one rank."""

    kind: str
    rank: int
    strength: float

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the fault of `kind:rank:strength`, such as `cpu_hog:1:2`. Raises: InvalidInputError."""
        try:
            kind, rank, strength = text.split(":")
            fault = cls(kind, int(rank), float(strength))
        except ValueError as error:
            raise InvalidInputError(f"fault {text!r}: expected kind:rank:strength such as cpu_hog:1:2") from error
        if kind not in UNITS:
            raise InvalidInputError(f"fault {text!r}: kind is not one of {', '.join(UNITS)}")
        if fault.rank < 0 or not 0 < fault.strength <= LIMITS[kind]:
            raise InvalidInputError(
                f"fault {text!r}: expected rank >= 0 and 0 < strength <= {LIMITS[kind]:g} {UNITS[kind]}"
            )
        if kind == "cpu_hog" and not fault.strength.is_integer():
            raise InvalidInputError(f"fault {text!r}: expected a whole number of {UNITS[kind]}")
        return fault

    def __str__(self) -> str:
        return f"{self.kind}:{self.rank}:{self.strength:g}"


class Disturbance:
    """A fault at work in its rank; on other ranks, and with no fault, nothing happens."""

    def __init__(self, fault: Fault | None, rank: int) -> None:
        self._fault = fault if fault and fault.rank == rank else None

    def in_loader(self) -> None:
        """Disturb the input; call it once a batch, where batches are made."""
        if self._fault and self._fault.kind == "slow_input":
            time.sleep(self._fault.strength / 1000)

    def in_step(self) -> None:
        """Disturb the computation; call it once a step."""
        if self._fault and self._fault.kind == "memory_traffic":
            touch_fresh_memory(int(self._fault.strength * 2**20))

    @contextmanager
    def around_loop(self) -> Iterator[None]:
        """Run the processes that compete for this rank's core as long as the loop."""
        count = int(self._fault.strength) if self._fault and self._fault.kind == "cpu_hog" else 0
        hogs = [subprocess.Popen([sys.executable, "-S", "-c", SPIN], preexec_fn=die_with_parent) for _ in range(count)]  # noqa: PLW1509
        try:
            yield
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()


def touch_fresh_memory(size_bytes: int) -> None:
    """Map, touch and unmap this much memory: the kernel clears every page, as under allocator churn."""
    with mmap.mmap(-1, size_bytes) as fresh:
        for offset in range(0, size_bytes, mmap.PAGESIZE):
            fresh[offset] = 1


def pin_to_core(local_rank: int, *, threads: int = 1) -> None:
    """Pin this process, and those that it starts from now on, to its own cores: rank 0 to the first, 1 to the next.

    Each rank has as many as it has threads; if there are not enough, ranks share.
    """
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[(local_rank * threads + thread) % len(cores)] for thread in range(threads)})


def die_with_parent() -> None:
    """Make the kernel kill this process when its parent ends. Source: PR_SET_PDEATHSIG, prctl(2)."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
