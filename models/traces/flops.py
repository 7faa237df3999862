"""Model FLOPs utilisation and points of the roofline, where a trace or the caller states FLOPs.

Sources: Chowdhery et al., "PaLM", 2022, appendix B (MFU); Williams et al., "Roofline", CACM 2009. One multiplication
with its addition is two FLOPs.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.traces.trace import NONE, Events, Kind, RankTrace
from crosswind.models.traces.nesting import roots
from crosswind.models.traces.operators import operator_times
from crosswind.models.traces.ranks import ranks_of

NANOSECONDS = 1e9
NAN = float("nan")


@dataclass(frozen=True)
class RooflinePoint:
    """All operators or kernels of one name; rates per second of the device's time that they take."""

    name: str
    count: int
    flops: float
    seconds: float
    bytes: float = NAN  # NaN where not stated

    @property
    def flops_per_second(self) -> float:
        """Return the rate; NaN without time."""
        return self.flops / self.seconds if self.seconds else NAN

    @property
    def flops_per_byte(self) -> float:
        """Return the arithmetic intensity; NaN where bytes are not stated."""
        return self.flops / self.bytes if self.bytes else NAN


@dataclass(frozen=True)
class Flops:
    """The work of a run against its devices' peak."""

    flops: float
    seconds: float  # the span of each rank, summed over ranks
    peak_flops_per_second: float  # of one rank's device; NaN where not given
    points: tuple[RooflinePoint, ...]  # those with most FLOPs first
    ranks: tuple[int, ...]
    notes: tuple[str, ...] = ()

    @property
    def utilisation(self) -> float:
        """Return FLOPs by what devices could do in the time (MFU); NaN without a peak."""
        return self.flops / (self.seconds * self.peak_flops_per_second) if self.seconds else NAN


def flops(
    traces: Sequence[RankTrace], peak_flops_per_second: float | None = None, stated_flops: float | None = None
) -> Flops:
    """Return FLOPs of events, or of all ranks as stated, with the utilisation against a device's peak.

    Raises: InvalidInputError for a peak or FLOPs of 0 or less, or when neither a trace nor the caller states FLOPs.
    """
    for name, value in (("peak FLOPs per second", peak_flops_per_second), ("FLOPs", stated_flops)):
        if value is not None and not 0 < value < float("inf"):
            raise InvalidInputError(f"{name}: {value}; expected a number over 0")
    rows: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0, 0.0])
    for trace in traces:
        _add(rows, trace)
    if not rows and stated_flops is None:
        raise InvalidInputError("traces: no event states FLOPs; expected torch.profiler's with_flops=True, or FLOPs")
    points = [RooflinePoint(name, int(row[0]), row[1], row[2], row[3] or NAN) for name, row in rows.items()]
    total = sum(one.flops for one in points) if stated_flops is None else stated_flops
    seconds = sum(end - begin for begin, end in (trace.span for trace in traces)) / NANOSECONDS
    notes = () if points else ("no event states FLOPs: there are no points of a roofline",)
    ordered = tuple(sorted(points, key=lambda one: -one.flops))
    return Flops(total, seconds, peak_flops_per_second or NAN, ordered, ranks_of(traces), notes)


def _add(rows: dict[str, list[float]], trace: RankTrace) -> None:
    """Add the outermost events that state FLOPs, with their time on the device, or their own without one."""
    device = trace.events.on_device()
    times = operator_times(trace.events)
    own = times.device_ns if len(device) else times.events.duration_ns
    outermost = _outermost(times.events, times.parent)
    kernels = device.of(Kind.KERNEL)
    _sum(rows, trace, times.events.where(outermost), own[outermost])
    is_stated = np.isfinite(kernels.flops) & ~np.any(outermost)  # operators' FLOPs are those of their kernels
    _sum(rows, trace, kernels.where(is_stated), kernels.duration_ns[is_stated])


def _outermost(operators: Events, parent: np.ndarray) -> np.ndarray:
    """Return which operators state FLOPs and are in none that does."""
    states = np.isfinite(operators.flops)
    nearest = np.append(roots(parent, states), NONE)
    return np.asarray(states & (nearest[parent] == NONE))


def _sum(rows: dict[str, list[float]], trace: RankTrace, events: Events, durations: np.ndarray) -> None:
    columns = events.name.tolist(), events.flops.tolist(), durations.tolist(), events.bytes.tolist()
    for name, count, duration, size in zip(*columns, strict=True):
        row = rows[trace.names[name]]
        row[0] += 1
        row[1] += count
        row[2] += duration / NANOSECONDS
        row[3] += max(size, 0)
