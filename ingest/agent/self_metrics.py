"""The agent's metrics of itself with every sweep: punctuality, losses, its own cost, and the node's clock."""

import os
import time
from dataclasses import asdict, dataclass

from crosswind.data.schema.metric import Column, Kind, MetricSet, Scalar
from crosswind.ingest.kernel.clock import Clock
from crosswind.ingest.kernel.kernel_files import KernelFiles
from crosswind.ingest.ship.shipped import Shipped

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def _counter(name: str, description: str) -> Column:
    return Column(name, description, Kind.COUNTER)


AGENT = MetricSet(
    "agent",
    "the agent itself",
    (
        Column("lateness_seconds", "start of the sweep after its due time", dtype="float64", unit="seconds"),
        Column("sweep_duration_seconds", "time that the sweep took", dtype="float64", unit="seconds"),
        Column("cpu_seconds_total", "processor time of the agent's process", Kind.COUNTER, "float64", "seconds"),
        Column("resident_bytes", "memory of the agent's process", unit="bytes", scale=PAGE_BYTES),
        _counter("missed_ticks_total", "sweeps left out because an earlier one took too long, or the node slept"),
        _counter("lost_sweeps_total", "sweeps that the spool could not take"),
        _counter("dropped_rows_total", "rows that did not fit their set"),
        _counter("dropped_segments_total", "unshipped segments given up for lack of space"),
        _counter("shipped_segments_total", "segments that a server took"),
        _counter("shipped_bytes_total", "bytes sent to a server, compressed"),
        _counter("ship_retries_total", "attempts to send that failed"),
        _counter("rejected_segments_total", "segments that a server refused for good; they are kept aside"),
        Column("spool_bytes", "size of the unshipped segments in the spool", unit="bytes"),
        Column("clock_offset_seconds", "what the kernel still slews away", dtype="float64", unit="seconds"),
        Column("clock_error_max_seconds", "largest error that the kernel admits", dtype="float64", unit="seconds"),
        Column("clock_synchronized", "1 when something keeps the clock right, else 0"),
        Column("began_seconds", "the node's clock when the agent began", Kind.EPOCH, unit="seconds", scale=1e-9),
        Column("report", "a message of the agent, reported once", Kind.FACT, "string"),
    ),
)


@dataclass
class Tally:
    """The loop's counters."""

    missed_ticks_total: int = 0
    lost_sweeps_total: int = 0
    dropped_rows_total: int = 0
    dropped_segments_total: int = 0


class SelfMetrics:
    """The agent's own row."""

    def __init__(self, files: KernelFiles) -> None:
        self.spool_bytes: int | None = None  # at the last look
        self._began_ns = time.monotonic_ns()
        self._clock = Clock()
        self._files = files

    def row(
        self,
        tally: Tally,
        shipped: Shipped | None,
        *,
        lateness_seconds: float | None,
        sweep_seconds: float,
        report: str | None = None,
    ) -> tuple[Scalar, ...]:
        """One row of the set `agent`, device first."""
        clock = self._clock.state()
        values: dict[str, Scalar] = {
            "lateness_seconds": _rounded(lateness_seconds),
            "sweep_duration_seconds": _rounded(sweep_seconds),
            "cpu_seconds_total": _rounded(time.process_time()),
            "resident_bytes": self._resident_pages(),
            "began_seconds": self._began_ns,
            "report": report,
            "spool_bytes": self.spool_bytes,
            **asdict(tally),
        }
        if shipped is not None:
            values["shipped_segments_total"] = shipped.segments
            values["shipped_bytes_total"] = shipped.sent_bytes
            values["ship_retries_total"] = shipped.retries
            values["rejected_segments_total"] = shipped.rejected
        if clock is not None:
            values["clock_offset_seconds"] = clock.offset_seconds
            values["clock_error_max_seconds"] = clock.max_error_seconds
            values["clock_synchronized"] = int(clock.is_synchronized)
        return ("agent", *map(values.get, COLUMNS))

    def _resident_pages(self) -> int:
        return int(self._files.read("/proc/self/statm").split()[1])


COLUMNS = [column.name for column in AGENT.columns]


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 7)
