"""The common interface of a node's measures."""

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Protocol

from crosswind.data.schema.checks import Measured


@dataclass(frozen=True)
class Bench:
    """The folder and the duration of a measurement."""

    node: str
    folder: Path  # for files that are removed again
    seconds: float


class NodeMeasure(Protocol):
    """Measures one thing on this node."""

    name: ClassVar[str]  # in `--only`
    weight: ClassVar[float]  # its share of the time, relative to the others'

    def measure(self, bench: Bench) -> Iterator[Measured]:
        """Yield the values, after about `bench.seconds`. Raises: UnavailableError, and OSError of the folder."""
        ...


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


@cache
def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's model by the kernel, else its architecture."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.machine()
