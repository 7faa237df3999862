"""The time of a rank's device, or of its host without one, in classes that sum to the span exactly.

Each instant counts once: as compute wherever a kernel computes (overlapped, if a collective runs besides), else as
exposed communication, else as memory; an idle instant is host-bound unless launched work was already waiting.
The first three agree with HolisticTraceAnalysis' temporal breakdown: its compute time is compute + overlapped, its
non-compute time is exposed communication + memory.
"""

from dataclasses import dataclass, field

import numpy as np

from crosswind.data.traces.trace import NONE, Events, Integers, Kind, RankTrace
from crosswind.models.traces.occupancy import Intervals, Occupancy, occupancy


@dataclass(frozen=True)
class Breakdown:
    """Nanoseconds of one rank; the classes sum to the span."""

    rank: int | None
    compute_ns: int
    overlapped_ns: int  # computation and communication at once
    exposed_ns: int  # communication alone
    memory_ns: int  # copies alone
    host_bound_ns: int  # idle, and nothing was launched that could have run
    idle_ns: int  # idle although work was launched: it waits for other streams or ranks, or for its start
    locations: str  # over which the classes are: "device", or "host"
    notes: tuple[str, ...] = field(default=())

    @property
    def span_ns(self) -> int:
        """Return the whole span."""
        parts = self.compute_ns, self.overlapped_ns, self.exposed_ns, self.memory_ns, self.host_bound_ns, self.idle_ns
        return sum(parts)

    @property
    def overlap_share(self) -> float:
        """Return the share of communication that computation hides; NaN without communication."""
        communication = self.overlapped_ns + self.exposed_ns
        return self.overlapped_ns / communication if communication else float("nan")


def breakdown(trace: RankTrace) -> Breakdown:
    """Return the breakdown of one rank."""
    device = trace.events.on_device()
    return _of_device(trace, device) if len(device) else _of_host(trace)


def pieces_of_device(trace: RankTrace, device: Events) -> Occupancy:
    """Return the span's pieces by what the device does, and whether launched work waits."""
    classes = {
        "compute": intervals(device.of(Kind.KERNEL)),
        "communication": intervals(device.of(Kind.COLLECTIVE)),
        "memory": intervals(device.of(Kind.COPY)),
        "launched": launched(trace.events),
    }
    return occupancy(trace.span, classes)


def _of_device(trace: RankTrace, device: Events) -> Breakdown:
    pieces = pieces_of_device(trace, device)
    compute, communication = pieces.busy["compute"], pieces.busy["communication"]
    memory, waiting = pieces.busy["memory"], pieces.busy["launched"]
    is_busy = compute | communication | memory
    return Breakdown(
        trace.rank,
        compute_ns=pieces.total(compute & ~communication),
        overlapped_ns=pieces.total(compute & communication),
        exposed_ns=pieces.total(communication & ~compute),
        memory_ns=pieces.total(memory & ~compute & ~communication),
        host_bound_ns=pieces.total(~is_busy & ~waiting),
        idle_ns=pieces.total(~is_busy & waiting),
        locations="device",
        notes=trace.notes,
    )


def _of_host(trace: RankTrace) -> Breakdown:
    """Return the breakdown of a host without a device: operators and useful states compute, messages communicate."""
    events = trace.events
    classes = {
        "compute": intervals(events.of(Kind.OPERATOR, Kind.USEFUL)),
        "communication": intervals(events.of(Kind.MESSAGE)),
        "memory": intervals(events.of(Kind.IO)),
    }
    pieces = occupancy(trace.span, classes)
    compute, communication, memory = (pieces.busy[name] for name in classes)
    return Breakdown(
        trace.rank,
        compute_ns=pieces.total(compute & ~communication),
        overlapped_ns=pieces.total(compute & communication),
        exposed_ns=pieces.total(communication & ~compute),
        memory_ns=pieces.total(memory & ~compute & ~communication),
        host_bound_ns=0,
        idle_ns=pieces.total(~(compute | communication | memory)),
        locations="host",
        notes=trace.notes,
    )


def intervals(events: Events) -> Intervals:
    """Return begins and ends of events."""
    return events.begin_ns, events.end_ns


def launched(events: Events) -> Intervals:
    """Return, for work of the device whose launch is in the trace, the times between its launch's end and its begin."""
    device, calls = events.on_device(), events.of(Kind.CALL, Kind.SYNC)
    device, calls = device.where(device.correlation != NONE), calls.where(calls.correlation != NONE)
    if not len(device) or not len(calls):
        nothing: Integers = np.empty(0, np.int64)
        return nothing, nothing
    calls = calls.where(np.argsort(calls.correlation, kind="stable"))
    place = np.minimum(np.searchsorted(calls.correlation, device.correlation), len(calls) - 1)
    is_launched = calls.correlation[place] == device.correlation
    begins, ends = calls.end_ns[place][is_launched], device.begin_ns[is_launched]
    return np.minimum(begins, ends), ends
