"""POP's metrics: how much of the time all locations compute usefully, and where the rest goes.

Parallel efficiency = load balance x communication efficiency = mean(useful) / time; communication efficiency =
serialisation x transfer, by the time on an ideal network, which moves data in no time. Computation scaling =
instructions x IPC x frequency, against a reference trace. Of devices, communication efficiency = device communication
x orchestration, after the time in which a device neither computes nor moves data.

Source: POP Centre of Excellence, "POP Standard Metrics for Parallel Performance Analysis"; for devices, BSC's TALP.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.traces.trace import Kind, RankTrace
from crosswind.models.traces.breakdown import intervals
from crosswind.models.traces.clocks import Clocks, clocks
from crosswind.models.traces.occupancy import Intervals, occupancy, union_ns
from crosswind.models.traces.ranks import absent_notes, ranks_of, text_of

NAN = float("nan")
ON_HOSTS = tuple(kind for kind in Kind if not kind.is_device)
FROM_OPERATORS = "useful: in operators, and not in calls that wait for a device"


@dataclass(frozen=True)
class IdealNetwork:
    """A run on a network that moves data in no time, from a simulator's trace or a replay."""

    runtime_ns: float
    useful_max_ns: float | None = None  # None: as measured
    is_estimated: bool = True


@dataclass(frozen=True)
class Pop:
    """POP's metrics of one trace, as ratios; NaN where they cannot be had."""

    runtime_ns: float
    useful_ns: tuple[float, ...]  # of each location
    locations: tuple[str, ...]  # "rank 3", "rank 3, device 0", "rank 3, thread 12"
    serialisation: float = NAN
    is_estimated: bool = False  # serialisation and transfer, without a simulated network
    device_communication: float = NAN  # useful time against useful time and data's movement, at most
    instructions: float = NAN  # in useful time, of all locations
    cycles: float = NAN
    notes: tuple[str, ...] = ()

    @property
    def load_balance(self) -> float:
        """Return mean by maximum of the useful times."""
        return _ratio(float(np.mean(self.useful_ns)), max(self.useful_ns))

    @property
    def communication(self) -> float:
        """Return the communication efficiency: the largest useful time by the runtime."""
        return _ratio(max(self.useful_ns), self.runtime_ns)

    @property
    def parallel(self) -> float:
        """Return the parallel efficiency: the mean useful time by the runtime."""
        return _ratio(float(np.mean(self.useful_ns)), self.runtime_ns)

    @property
    def transfer(self) -> float:
        """Return the transfer efficiency: what serialisation leaves of the communication efficiency."""
        return _ratio(self.communication, self.serialisation)

    @property
    def orchestration(self) -> float:
        """Return what the device's communication leaves of the communication efficiency."""
        return _ratio(self.communication, self.device_communication)

    @property
    def ipc(self) -> float:
        """Return instructions per cycle."""
        return _ratio(self.instructions, self.cycles)

    @property
    def frequency_ghz(self) -> float:
        """Return cycles per nanosecond of useful time."""
        return _ratio(self.cycles, sum(self.useful_ns))

    def on(self, ideal: IdealNetwork) -> Self:
        """Return the metrics with serialisation and transfer, from the run on an ideal network."""
        useful = max(self.useful_ns) if ideal.useful_max_ns is None else ideal.useful_max_ns
        return replace(self, serialisation=min(1.0, _ratio(useful, ideal.runtime_ns)), is_estimated=ideal.is_estimated)


@dataclass(frozen=True)
class Scaling:
    """A trace against a reference; ratios, NaN where they cannot be had."""

    computation: float
    instructions: float
    ipc: float
    frequency: float
    global_efficiency: float  # parallel efficiency x computation
    speedup: float
    kind: str


@dataclass(frozen=True)
class RankUse:
    """The use of one rank, ns: useful times by location, the edges of all its work, a device's busy times."""

    edges: tuple[int, int] | None  # on its own clock; None without any work
    useful_ns: Mapping[str, int]  # by what follows "rank 3": ", device 0", or nothing
    busy_ns: tuple[int, ...] = ()
    is_stated: bool = True  # of a host: useful times are, and not taken from operators


def use_of_devices(trace: RankTrace) -> RankUse:
    """Return the use of a rank's devices; useful is computation, also beside communication."""
    devices = np.array([place.device for place in trace.places], np.int64)
    work, useful, busy = trace.events.on_device(), {}, []
    for device in np.unique(devices[work.place]).tolist():
        mine = work.where(devices[work.place] == device)
        useful[f", device {device}"] = union_ns(intervals(mine, Kind.KERNEL))
        busy.append(union_ns(intervals(mine)))
    return RankUse(_edges(intervals(work)), useful, tuple(busy))


def use_of_host(trace: RankTrace) -> RankUse:
    """Return the use of a rank's threads, where useful times are stated, else of its host by its operators."""
    is_stated = bool(np.any(trace.events.kind == Kind.USEFUL))
    return RankUse(_edges(intervals(trace.events, *ON_HOSTS)), _useful_of_host(trace), is_stated=is_stated)


def pop_of_hosts(
    traces: Sequence[RankTrace], offsets: Clocks | None = None, uses: Sequence[RankUse] | None = None
) -> Pop:
    """Return the metrics over the threads whose useful times are stated, else over ranks by their operators.

    Of traces whose `uses` are given, only collectives and steps are read. Raises: InvalidInputError as `ranks_of`, or
    when nothing happens on hosts.
    """
    uses = [use_of_host(trace) for trace in traces] if uses is None else uses
    notes = () if all(use.is_stated for use in uses) else (FROM_OPERATORS,)
    pop = _pop(traces, uses, offsets)
    pop = replace(pop, notes=(*notes, *pop.notes))
    return replace(pop, instructions=_counted(traces, "instructions"), cycles=_counted(traces, "cycles"))


def pop_of_devices(
    traces: Sequence[RankTrace], offsets: Clocks | None = None, uses: Sequence[RankUse] | None = None
) -> Pop:
    """Return the metrics over the devices of the ranks.

    Of traces whose `uses` are given, only collectives and steps are read. Raises: InvalidInputError as `ranks_of`, or
    when devices do nothing.
    """
    uses = [use_of_devices(trace) for trace in traces] if uses is None else uses
    pop = _pop(traces, uses, offsets)
    lost = [rank for rank, use in zip(ranks_of(traces), uses, strict=True) if use.edges is None]
    pop = replace(pop, notes=(*pop.notes, f"{text_of(lost)}: no work of a device")) if lost else pop
    busy = max((ns for use in uses for ns in use.busy_ns), default=0)
    return replace(pop, device_communication=_ratio(max(pop.useful_ns), busy))


def _pop(traces: Sequence[RankTrace], uses: Sequence[RankUse], offsets: Clocks | None) -> Pop:
    """Return the metrics of useful times by location, over the time between the ranks' edges on aligned clocks."""
    offsets = clocks(traces) if offsets is None else offsets
    ranks = ranks_of(traces)
    useful = {
        f"rank {rank}{place}": ns for rank, use in zip(ranks, uses, strict=True) for place, ns in use.useful_ns.items()
    }
    spans = np.array([use.edges or (0, 0) for use in uses], np.int64)
    moved = [span for span, use in zip(offsets.on_first(spans.T).T.tolist(), uses, strict=True) if use.edges]
    if not useful or not moved:
        raise InvalidInputError("traces: no event at these locations; expected some to measure efficiency over")
    runtime = max(end for _, end in moved) - min(begin for begin, _ in moved)
    return Pop(runtime, tuple(useful.values()), tuple(useful), notes=(*absent_notes(traces), *offsets.notes))


def _edges(times: Intervals) -> tuple[int, int] | None:
    return (int(times[0].min()), int(times[1].max())) if len(times[0]) else None


def _useful_of_host(trace: RankTrace) -> dict[str, int]:
    """Return useful times of a host by thread, or of all of it under the name ""."""
    stated = trace.events.of(Kind.USEFUL)
    if len(stated):
        return {
            f", {trace.places[place].label}": union_ns(intervals(stated.where(stated.place == place)))
            for place in np.unique(stated.place).tolist()
        }
    edges = _edges(intervals(trace.events, *ON_HOSTS))
    if edges is None:
        return {}
    classes = {"useful": intervals(trace.events, Kind.OPERATOR), "waits": intervals(trace.events, Kind.SYNC)}
    pieces = occupancy(edges, classes)
    return {"": pieces.total(pieces.busy["useful"] & ~pieces.busy["waits"])}


def _counted(traces: Sequence[RankTrace], name: str) -> float:
    """Return the sum of a counter over all ranks; NaN unless every rank has it."""
    return float(sum(trace.counters.get(name, NAN) for trace in traces))


def scaling(pop: Pop, reference: Pop, kind: Literal["strong", "weak"] = "strong") -> Scaling:
    """Return how computation scales from a reference: of one problem (strong), or one that grows with the locations."""
    size = len(pop.locations) / len(reference.locations) if kind == "weak" else 1.0
    computation = _ratio(sum(reference.useful_ns) * size, sum(pop.useful_ns))
    return Scaling(
        computation,
        instructions=_ratio(reference.instructions * size, pop.instructions),
        ipc=_ratio(pop.ipc, reference.ipc),
        frequency=_ratio(pop.frequency_ghz, reference.frequency_ghz),
        global_efficiency=pop.parallel * computation,
        speedup=_ratio(reference.runtime_ns * size, pop.runtime_ns),
        kind=kind,
    )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else NAN
