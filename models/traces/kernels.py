"""The device's time by type of its work, and by kernel.

Types agree with HolisticTraceAnalysis' kernel breakdown: an instant in which two types run is of neither alone.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import fsum

import numpy as np

from crosswind.data.traces.naming import UNKNOWN, operation_of
from crosswind.data.traces.trace import Kind, RankTrace
from crosswind.models.traces.breakdown import device_classes
from crosswind.models.traces.occupancy import occupancy
from crosswind.models.traces.ranks import ranks_of

TYPES = ("communication", "compute", "memory")


@dataclass(frozen=True)
class KernelTypes:
    """Nanoseconds of devices by the types that run at once, as in ("communication", "compute"), summed over ranks."""

    busy_ns: dict[tuple[str, ...], int]
    ranks: tuple[int, ...]
    notes: tuple[str, ...] = ()

    @property
    def shares(self) -> dict[tuple[str, ...], float]:
        """Return shares of the time in which anything runs, largest first."""
        total = sum(self.busy_ns.values())
        ordered = sorted(self.busy_ns.items(), key=lambda item: -item[1])
        return {types: ns / total for types, ns in ordered if ns}


@dataclass(frozen=True)
class KernelTotal:
    """All runs of the kernels of one name, over all ranks."""

    name: str
    kind: Kind
    total_ns: int
    count: int
    share: float  # of the time of all kernels, those that overlap counted twice

    @property
    def mean_ns(self) -> float:
        """Return the mean of one run."""
        return self.total_ns / self.count


@dataclass(frozen=True)
class Kernels:
    """Kernels by their total time, the longest first."""

    totals: tuple[KernelTotal, ...]
    ranks: tuple[int, ...]
    notes: tuple[str, ...] = ()


def kernel_types(traces: Sequence[RankTrace]) -> KernelTypes:
    """Return the devices' time by type. Raises: InvalidInputError as `ranks_of`."""
    ranks, busy = ranks_of(traces), dict.fromkeys(_combinations(), 0)
    for trace in traces:
        if np.any(trace.events.kind <= Kind.COPY):
            pieces = occupancy(trace.span, device_classes(trace.events))
            for types in busy:
                running = [pieces.busy[name] == (name in types) for name in TYPES]
                busy[types] += pieces.total(np.logical_and.reduce(running))
    return KernelTypes(busy, ranks, _without_device(traces))


def kernels(traces: Sequence[RankTrace]) -> Kernels:
    """Return totals of kernels, collectives and copies by name. Raises: InvalidInputError as `ranks_of`."""
    totals: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
    for trace in traces:
        _add(totals, trace)
    whole = fsum(total for total, _ in totals.values()) or 1.0
    ordered = sorted(totals.items(), key=lambda item: -item[1][0])
    rows = (KernelTotal(name, Kind(kind), ns, count, ns / whole) for (name, kind), (ns, count) in ordered)
    return Kernels(tuple(rows), ranks_of(traces), (*_without_device(traces), *unknown_notes(list(totals.items()))))


def unknown_notes(totals: Sequence[tuple[tuple[str, int], Sequence[int]]]) -> tuple[str, ...]:
    """Return a note of collectives whose operation their names do not show, from ((name, kind), (ns, count))."""
    unknown = [
        count for (name, kind), (_, count) in totals if kind == Kind.COLLECTIVE and operation_of(name) == UNKNOWN
    ]
    return (f"{UNKNOWN}: {sum(unknown)} of {len(unknown)} names",) if unknown else ()


def _combinations() -> list[tuple[str, ...]]:
    chosen = product((True, False), repeat=len(TYPES))
    return [tuple(name for name, is_in in zip(TYPES, row, strict=True) if is_in) for row in chosen if any(row)]


def _add(totals: dict[tuple[str, int], list[int]], trace: RankTrace) -> None:
    device = trace.events.on_device()
    key = device.name.astype(np.int64) * len(Kind) + device.kind
    codes, place = np.unique(key, return_inverse=True)
    ns, counts = np.zeros(len(codes), np.int64), np.bincount(place, minlength=len(codes))
    np.add.at(ns, place, device.duration_ns)
    for code, total, count in zip(codes.tolist(), ns.tolist(), counts.tolist(), strict=True):
        entry = totals[trace.names[code // len(Kind)], code % len(Kind)]
        entry[0] += total
        entry[1] += count


def _without_device(traces: Sequence[RankTrace]) -> tuple[str, ...]:
    count = sum(not len(trace.events.on_device()) for trace in traces)
    return (f"{count} of {len(traces)} traces have no work of a device",) if count else ()
