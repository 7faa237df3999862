"""A fixed quantum of work, repeated: the speed of a core, and the noise of the system."""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean, median
from typing import ClassVar

from crosswind.data.schema.checks import Measured
from crosswind.ingest.preflight.measure import Bench, processor

TURNS = 20_000  # a quantum of about a millisecond, as long as the noise that hurts jobs of many ranks
LEAST = 20  # quanta


@dataclass(frozen=True)
class Loop:
    """Times quanta of fixed work on one core: their median, and their mean / minimum.

    Source: Petrini, Kerbyson, Pakin 2003, "The case of the missing supercomputer performance" (fixed work quantum).
    """

    name: ClassVar[str] = "loop"
    weight: ClassVar[float] = 1.0
    turns: int = TURNS

    def measure(self, bench: Bench) -> Iterator[Measured]:
        """Yield seconds of a quantum, and the ratio that shows noise."""
        times: list[float] = []
        ends = time.perf_counter() + bench.seconds
        while len(times) < LEAST or time.perf_counter() < ends:
            began = time.perf_counter()
            _work(self.turns)
            times.append(time.perf_counter() - began)
        method = f"{self.turns} turns of Python {sys.version_info.major}.{sys.version_info.minor}"
        for measure, value in (("loop", median(times)), ("noise", fmean(times) / min(times))):
            yield Measured(bench.node, measure, value, "cpu", method=method, hardware=processor())


def _work(turns: int) -> int:
    sum_ = 0
    for turn in range(turns):
        sum_ += turn
    return sum_
