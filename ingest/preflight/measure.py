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
    """The place of a measurement, and how long it may take."""

    node: str
    folder: Path  # for files that are removed again
    seconds: float


class NodeMeasure(Protocol):
    """Measures one thing on this node."""

    name: ClassVar[str]  # as `--only` calls it
    weight: ClassVar[float]  # its part of the time, beside the others'

    def measure(self, bench: Bench) -> Iterator[Measured]:
        """The values, after about `bench.seconds`. Raises: UnavailableError, and OSError of the folder."""
        ...


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


@cache
def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's model as the kernel tells it, else its architecture."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.machine()
