"""Rows of one rank's trace, from tables of events, in the columnar form."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.columns import Codes, EventColumns
from crosswind.data.traces.naming import kinds_of_kernels
from crosswind.data.traces.trace import Events, Group, Kind, Place, RankTrace

STEP = re.compile(r"(profiler_?step|(train(ing)?[ _]?)?(step|iter(ation)?))[ _#:.=-]*\d+", re.IGNORECASE)
WAITS = re.compile(r"Synchronize|StreamWaitEvent|EventQuery|hipDeviceSync|hsa_signal_wait", re.IGNORECASE)
MESSAGE = re.compile(r"P?MPI_\w+|gloo:|ucc:|mpi:")
LATEST_NS = 1 << 61  # after 1970, in 2043; or after a boot
Edges: TypeAlias = tuple[Sequence[int] | np.ndarray, Sequence[int] | np.ndarray]  # begins and ends


@dataclass
class RankRows:
    """The events of a rank so far; names, streams and threads, and communicators by number."""

    source: str  # the file
    columns: EventColumns = field(default_factory=EventColumns)
    names: Codes[str] = field(default_factory=Codes)
    places: Codes[Place] = field(default_factory=Codes)
    groups: Codes[Group] = field(default_factory=Codes)
    base_ns: int = 0  # added to all times
    count: int = 0
    left_out: int = 0

    def add(
        self,
        kind: Kind,
        begins_and_ends: Edges,
        names: Sequence[str],
        places: Sequence[Place],
        **columns: Any,
    ) -> None:
        """Add events of a kind, times in ns; other columns by name.

        Those without a begin, that end before it, or whose end is no time are left out.
        Raises: MalformedError when a number does not fit its column.
        """
        try:
            self._add(kind, begins_and_ends, names, places, **columns)
        except (OverflowError, TypeError, ValueError) as error:
            raise MalformedError(
                f"{self.source}: events of kind {kind.name.lower()}: {error}; expected whole numbers"
            ) from error

    def _add(self, kind: Kind, edges: Edges, names: Sequence[str], places: Sequence[Place], **columns: Any) -> None:
        begin_ns, end_ns = (np.asarray(side, np.int64) + self.base_ns for side in edges)
        is_good = (end_ns >= begin_ns) & (begin_ns >= self.base_ns) & (end_ns < LATEST_NS)
        columns |= {
            "begin_ns": begin_ns,
            "duration_ns": end_ns - begin_ns,
            "kind": np.full(len(begin_ns), kind, np.uint8),
            "name": self.names.of(names),
            "place": self.places.of(places),
        }
        kept = {name: np.asarray(column)[is_good] for name, column in columns.items()}
        self.count += int(is_good.sum())
        self.left_out += int((~is_good).sum())
        self.columns.add(int(is_good.sum()), kept)

    def trace(self, *, is_stated: bool = False, **facts: Any) -> RankTrace:
        """Return the trace; unless kinds are stated, names tell them further: collectives, copies, steps, waits.

        A note says how many events were left out.
        """
        names = tuple(self.names.number_of)
        if self.left_out:
            note = f"{self.left_out} events without a begin, that end before it, or whose end is no time are left out"
            facts["notes"] = (*facts.get("notes", ()), note)
        events = self.columns.events() if is_stated else classified(self.columns.events(), names)
        return RankTrace(
            events, names, tuple(self.places.number_of), tuple(self.groups.number_of), source=self.source, **facts
        )


def classified(events: Events, names: Sequence[str]) -> Events:
    """Return events with the kinds that names show."""
    kind = events.kind.copy()
    is_kernel = kind == Kind.KERNEL
    if is_kernel.any():
        kind[is_kernel] = kinds_of_kernels(names)[events.name[is_kernel]]
    for old, new, pattern in (
        (Kind.ANNOTATION, Kind.STEP, STEP),
        (Kind.ANNOTATION, Kind.MESSAGE, MESSAGE),
        (Kind.CALL, Kind.SYNC, WAITS),
    ):
        is_new = np.array([_matches(pattern, new, name) for name in names], bool)
        kind[(kind == old) & is_new[events.name]] = new
    return Events(**(events.columns | {"kind": kind}))


def _matches(pattern: re.Pattern[str], kind: Kind, name: str) -> bool:
    if kind == Kind.STEP:
        return pattern.fullmatch(name) is not None
    return (pattern.match(name) if kind == Kind.MESSAGE else pattern.search(name)) is not None
