"""The time of a rank's device, or of its host without one, in classes that sum to the span exactly.

Each instant counts once: as compute wherever a kernel computes (overlapped, if a collective runs besides), else as
exposed communication, else as memory; an idle instant is host-bound unless launched work was already waiting.
The first three agree with HolisticTraceAnalysis' temporal breakdown: its compute time is compute + overlapped, its
non-compute time is exposed communication + memory.
"""

from dataclasses import dataclass, field

import numpy as np

from crosswind.data.traces.trace import NONE, Events, Kind, RankTrace
from crosswind.models.traces.launches import launches
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
    return _of_device(trace) if np.any(trace.events.kind <= Kind.COPY) else _of_host(trace)


def pieces_of_device(trace: RankTrace) -> Occupancy:
    """Return the span's pieces by what the device does, and whether launched work waits."""
    return occupancy(trace.span, device_classes(trace.events) | {"launched": launched(trace.events)})


def device_classes(events: Events) -> dict[str, Intervals]:
    """Return when a device computes, communicates and copies."""
    return {
        "compute": intervals(events, Kind.KERNEL),
        "communication": intervals(events, Kind.COLLECTIVE),
        "memory": intervals(events, Kind.COPY),
    }


def _of_device(trace: RankTrace) -> Breakdown:
    pieces = pieces_of_device(trace)
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
        "compute": intervals(events, Kind.OPERATOR, Kind.USEFUL),
        "communication": intervals(events, Kind.MESSAGE),
        "memory": intervals(events, Kind.IO),
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


def intervals(events: Events, *kinds: Kind) -> Intervals:
    """Return begins and ends of events of these kinds, of all without any."""
    if not kinds:
        return events.begin_ns, events.end_ns
    is_chosen = np.zeros(len(Kind), bool)
    is_chosen[list(kinds)] = True
    chosen = np.flatnonzero(is_chosen[events.kind])
    begins = events.begin_ns[chosen]
    return begins, begins + events.duration_ns[chosen]


def launched(events: Events) -> Intervals:
    """Return, for work of the device whose launch is in the trace, the times between its launch's end and its begin."""
    pairs = launches(events)
    is_launched = pairs.call != NONE
    device, call = pairs.device[is_launched], pairs.call[is_launched]
    ends = events.begin_ns[device]
    return np.minimum(events.begin_ns[call] + events.duration_ns[call], ends), ends
