"""The device's time by type of its work, and by kernel.

Types agree with HolisticTraceAnalysis' kernel breakdown: an instant in which two types run is of neither alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import fsum

import numpy as np

from crosswind.data.traces.naming import UNKNOWN, operation_of
from crosswind.data.traces.trace import Kind, RankTrace
from crosswind.models.traces.breakdown import device_classes
from crosswind.models.traces.occupancy import occupancy
from crosswind.models.traces.ranks import RankSums

TYPES = ("communication", "compute", "memory")
SHOWN, NAME_LETTERS = 3, 60  # of names in a note


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


def kernel_types(traces: Iterable[RankTrace]) -> KernelTypes:
    """Return the devices' time by type. Raises: InvalidInputError as `ranks_of`."""
    return KernelSums.of(traces).types


def kernels(traces: Iterable[RankTrace]) -> Kernels:
    """Return totals of kernels, collectives and copies by name. Raises: InvalidInputError as `ranks_of`."""
    return KernelSums.of(traces).kernels


@dataclass
class KernelSums(RankSums):
    """Times of devices by type, and of kernels by name."""

    without_device: int = 0
    _busy: dict[tuple[str, ...], int] = field(default_factory=lambda: dict.fromkeys(_combinations(), 0))
    _totals: dict[tuple[str, int], list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def add(self, trace: RankTrace) -> None:
        """Add a rank."""
        super().add(trace)
        if not np.any(trace.events.kind <= Kind.COPY):
            self.without_device += 1
            return
        _add(self._totals, trace)
        pieces = occupancy(trace.span, device_classes(trace.events))
        for types in self._busy:
            running = [pieces.busy[name] == (name in types) for name in TYPES]
            self._busy[types] += pieces.total(np.logical_and.reduce(running))

    @property
    def types(self) -> KernelTypes:
        """Return the time by type."""
        return KernelTypes(dict(self._busy), self.ranks, self._notes())

    @property
    def kernels(self) -> Kernels:
        """Return the totals by name."""
        whole = fsum(total for total, _ in self._totals.values()) or 1.0
        ordered = sorted(self._totals.items(), key=lambda item: -item[1][0])
        rows = (KernelTotal(name, Kind(kind), ns, count, ns / whole) for (name, kind), (ns, count) in ordered)
        notes = (*self._notes(), *unknown_notes(list(self._totals.items())))
        return Kernels(tuple(rows), self.ranks, notes)

    def _notes(self) -> tuple[str, ...]:
        count, of = self.without_device, len(self.stated)
        return (f"{count} of {of} traces have no work of a device",) if count else ()


def unknown_notes(totals: Sequence[tuple[tuple[str, int], Sequence[int]]]) -> tuple[str, ...]:
    """Return a note of collectives whose operation their names do not show, from ((name, kind), (ns, count))."""
    unknown = {
        name: count for (name, kind), (_, count) in totals if kind == Kind.COLLECTIVE and operation_of(name) == UNKNOWN
    }
    names = ", ".join(name[:NAME_LETTERS] for name in list(unknown)[:SHOWN])
    return (f"{UNKNOWN}: {sum(unknown.values())} kernels do not name their operation ({names})",) if unknown else ()


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
