"""Receive path of cores: packets taken from the network, dropped, or left for later."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import Column, Kind, MetricSet, Sample
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.kernel_files import KernelFiles


def _counter(name: str, description: str) -> Column:
    return Column(name, description, Kind.COUNTER, width_bits=32)


# The place of each column in a line.
PLACES = {
    0: _counter("processed_packets_total", "packets taken from network cards, virtual ones included"),
    1: _counter("dropped_packets_total", "packets thrown away because the core's queue was full"),
    2: _counter("squeezed_total", "times the core stopped with packets left, out of time or budget"),
    9: _counter("steered_wakeups_total", "times another core asked this one to take packets over"),
    10: _counter("flow_limited_packets_total", "packets of a flow so large that it was cut back"),
    11: Column("backlog_packets", "packets waiting in the core's queues"),
}
CPU_PLACE = 12
SOFTNET = MetricSet("softnet", "packets received by each core, before any protocol", tuple(PLACES.values()))


@dataclass(frozen=True)
class SoftnetCollector:
    """Counters of 32 bits of each core's receive path.

    The core's number and its backlog are there since Linux 5.10. Before, cores are numbered in the order of the
    lines, which leave out cores that are offline.
    Source: softnet_seq_show in Linux net/core/net-procfs.c
    """

    proc: Path = Path("/proc")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = SOFTNET

    def available(self) -> bool:
        """Return whether the kernel shows its receive queues."""
        return self.files.is_readable(f"{self.proc}/net/softnet_stat")

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every core that is online. Raises: UnavailableError, MalformedError."""
        path = f"{self.proc}/net/softnet_stat"
        lines = self.files.read(path).splitlines()
        if not lines:
            raise MalformedError(f"{path}: expected a line a core, found none")
        for order, line in enumerate(lines):
            numbers = _numbers(line, path)
            cpu = numbers[CPU_PLACE] if len(numbers) > CPU_PLACE else order
            values = {column.name: numbers[place] for place, column in PLACES.items() if place < len(numbers)}
            yield Sample(f"cpu{cpu}", values)


def _numbers(line: bytes, path: str) -> tuple[int, ...]:
    """Return the numbers of a line: eight hexadecimal digits each, one blank between two."""
    numbers = (len(line) + 1) // 9
    try:
        if not 9 <= numbers <= 64 or line[8::9].strip():
            raise ValueError
        return struct.unpack(f">{numbers}I", bytes.fromhex(line.decode("ascii")))
    except (ValueError, struct.error):
        raise MalformedError(f"{path}: expected 9 or more numbers of 8 digits, found {line!r:.80}") from None


SOURCE = Source("softnet", lambda host, _: SoftnetCollector(host.proc, host.files), advice="mount /proc")
