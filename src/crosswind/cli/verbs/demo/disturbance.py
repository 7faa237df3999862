"""Other users of the machine during a training run, by the kernel's own counters."""

import resource
from dataclasses import dataclass
from typing import Self

from crosswind.ingest.collectors.cpu import CPU, MODES, CpuCollector
from crosswind.ingest.lab.warm import Trainer

IDLE = ("idle_seconds_total", "iowait_seconds_total")
STEAL = "steal_seconds_total"
LARGEST_SHARE = 0.05  # of all cores' time: on two cores that is a tenth of one rank's, which makes a run slow


@dataclass(frozen=True)
class CpuTime:
    """Core-seconds since boot, summed over the cores; `own` is what this process used, with children that have ended.

    To that a trainer adds what its forks used.

    Sources: proc_stat(5), getrusage(2).
    """

    passed: float
    stolen: float
    busy: float
    own: float

    @classmethod
    def now(cls, trainer: Trainer | None = None) -> Self:
        """As the kernel counts this moment. Raises: UnavailableError, MalformedError."""
        [node] = [sample for sample in CpuCollector().read() if sample.device == "all"]
        seconds = {name: float(value or 0) for name, value in CPU.convert(node).items() if name in MODES}
        passed, stolen = sum(seconds.values()), seconds[STEAL]
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        own = sum(usage.ru_utime + usage.ru_stime for usage in usages)
        own += trainer.cpu_seconds() if trainer else 0.0
        return cls(passed, stolen, passed - stolen - sum(seconds[name] for name in IDLE), own)


@dataclass(frozen=True)
class Disturbance:
    """A program or hypervisor that took cores from a run, and the share of their time that it took."""

    by: str
    share: float

    def __str__(self) -> str:
        return f"{self.by} ({self.share:.0%})"


def disturbance_between(before: CpuTime, after: CpuTime) -> Disturbance | None:
    """Return the larger of what the hypervisor and other programs took, None where neither reaches LARGEST_SHARE."""
    passed = after.passed - before.passed
    if passed <= 0:
        return None
    others = (after.busy - before.busy) - (after.own - before.own)
    taken = {"CPU steal": after.stolen - before.stolen, "other programs": others}
    by = max(taken, key=lambda name: taken[name])
    share = taken[by] / passed
    return Disturbance(by, share) if share >= LARGEST_SHARE else None
