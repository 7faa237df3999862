"""Pressure stall information: how long tasks of this node waited for cpu, io and memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import Column, Kind, MetricSet, Sample
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.kernel_files import KernelFiles
from crosswind.ingest.kernel.procfs import count

RESOURCES = ("cpu", "io", "memory")
MICROSECOND = 1e-6


def _share(name: str, description: str) -> Column:
    return Column(name, description, Kind.COUNTER, unit="seconds", scale=MICROSECOND)


SHARES = {
    b"some": _share("waiting_seconds_total", "at least one task waited"),
    b"full": _share("stalled_seconds_total", "all busy tasks waited at once; undefined for cpu"),
}
PRESSURE = MetricSet("pressure", "time lost waiting for cpu, io or memory (the device)", tuple(SHARES.values()))


@dataclass(frozen=True)
class PressureCollector:
    """Microseconds in which some, or all, tasks waited for a resource.

    Source: https://docs.kernel.org/accounting/psi.html
    """

    proc: Path = Path("/proc")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = PRESSURE

    def available(self) -> bool:
        """Return whether this kernel measures pressure; `psi=0` leaves the files but refuses to read them."""
        return self.files.is_readable(f"{self.proc}/pressure/cpu")

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every resource. Raises: UnavailableError, MalformedError."""
        for resource in RESOURCES:
            path = f"{self.proc}/pressure/{resource}"
            lines = dict(line.partition(b" ")[::2] for line in self.files.read(path).splitlines())
            if b"some" not in lines:
                raise MalformedError(f"{path}: expected a line starting with some")
            if resource == "cpu":  # the kernel writes a full share of zero, where none is defined for a whole node
                lines.pop(b"full", None)
            shares = {column.name: _total(lines[name], path) for name, column in SHARES.items() if name in lines}
            yield Sample(resource, shares)


def _total(line: bytes, path: str) -> int:
    _, mark, total = line.rpartition(b" total=")
    return count(total if mark else None, path)


SOURCE = Source(
    "pressure",
    lambda host, _: PressureCollector(host.proc, host.files),
    advice="a kernel with CONFIG_PSI, booted with psi=1",
)
