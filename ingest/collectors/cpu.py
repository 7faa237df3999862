"""Processors: time of each core by mode, and the scheduler's counters of the node."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, OnFull, Sample
from crosswind.ingest.collectors.row import Row, samples_of
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.kernel_files import KernelFiles
from crosswind.ingest.kernel.procfs import count, counts

TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
MODES = {
    "user_seconds_total": "in programs, guests included",
    "nice_seconds_total": "in programs of lowered priority",
    "system_seconds_total": "in the kernel",
    "idle_seconds_total": "idle; the kernel may correct it downwards",
    "iowait_seconds_total": "idle while a task of this core waits for a disk; the kernel may correct it downwards",
    "irq_seconds_total": "in interrupt handlers",
    "softirq_seconds_total": "in deferred interrupt work, such as network receive",
    "steal_seconds_total": "taken by the hypervisor for others",
}
CORRECTED = ("idle_seconds_total", "iowait_seconds_total")
NODE_WIDE = {
    b"ctxt": Column("context_switches_total", "switches between tasks, node-wide", Kind.COUNTER),
    b"processes": Column("forks_total", "processes and threads made, node-wide", Kind.COUNTER),
    b"intr": Column("interrupts_total", "interrupts served, node-wide", Kind.COUNTER),
    b"procs_running": Column("procs_running", "tasks running or ready to run, node-wide"),
    b"procs_blocked": Column("procs_blocked", "tasks waiting for a disk, node-wide"),
}
LOADAVG = re.compile(rb"(\d{1,9}\.\d\d) (\d{1,9}\.\d\d) (\d{1,9}\.\d\d) \d+/\d+ \d+\n")
LOADS = (
    Column("load1", "tasks running, ready to run or waiting for a disk, averaged over 1 minute", dtype="float64"),
    Column("load5", "the same over 5 minutes", dtype="float64"),
    Column("load15", "the same over 15 minutes", dtype="float64"),
)


def _mode(name: str, where: str) -> Column:
    on_full = OnFull.CLAMP if name in CORRECTED else OnFull.WRAP
    return Column(name, f"time {where}", Kind.COUNTER, unit="seconds", scale=TICK_SECONDS, on_full=on_full)


CPU = MetricSet(
    "cpu",
    "processor time by mode; device cpu0 ... is a core, device all their sum",
    (
        *(_mode(name, where) for name, where in MODES.items()),
        *NODE_WIDE.values(),
        *LOADS,
    ),
)


NAMES = tuple(column.name for column in CPU.columns)
OF_NODE = (None,) * (len(NODE_WIDE) + len(LOADS))  # not for a single core


@dataclass(frozen=True)
class CpuCollector:
    """Time of each core by mode, in clock ticks, and the node's scheduler counters.

    Source: proc_stat(5), proc_loadavg(5)
    """

    proc: Path = Path("/proc")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = CPU

    def available(self) -> bool:
        """Return whether the kernel shows its statistics."""
        return self.files.is_readable(f"{self.proc}/stat")

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every core and one for all of them. Raises: UnavailableError, MalformedError."""
        return samples_of(self.read_rows(), NAMES)

    def read_rows(self) -> list[Row]:
        """Return a row for every core and one for all of them. Raises: UnavailableError, MalformedError."""
        path = f"{self.proc}/stat"
        lines = [line.split(None, 9) for line in self.files.read(path).splitlines()]
        fields = {line[0]: line[1:] for line in lines if len(line) > 1}
        if b"cpu" not in fields:
            raise MalformedError(f"{path}: expected a line starting with cpu")
        node_wide = [count(fields[name][0], path) if name in fields else None for name in NODE_WIDE]
        rows: list[Row] = []
        for name, ticks in fields.items():
            if name == b"cpu":
                rows.append(("all", *_modes(ticks, path), *node_wide, *self._loads()))
            elif name.startswith(b"cpu"):
                rows.append((f"cpu{count(name[3:], path)}", *_modes(ticks, path), *OF_NODE))
        return rows

    def _loads(self) -> Sequence[float | None]:
        try:
            loads = LOADAVG.fullmatch(self.files.read(f"{self.proc}/loadavg"))
        except (UnavailableError, MalformedError):  # sandboxes hide it
            loads = None
        return list(map(float, loads.groups())) if loads else (None,) * len(LOADS)


def _modes(ticks: list[bytes], path: str) -> list[int]:
    if len(ticks) < len(MODES):
        raise MalformedError(f"{path}: expected {len(MODES)} modes a core, found {len(ticks)}")
    return counts(ticks[: len(MODES)], path)


SOURCE = Source("cpu", lambda host, _: CpuCollector(host.proc, host.files), advice="mount /proc")
