"""The form of a trace: the events of one rank as columns; readers make it, analyses read it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError

Integers: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[np.int32]
Flags: TypeAlias = NDArray[np.bool_]
NONE = -1  # of codes, sequence numbers, bytes and ids: the event has none


class Kind(IntEnum):
    """The class of an event; the first three are work of a device."""

    KERNEL = 0  # computation on a device
    COLLECTIVE = 1  # communication on a device
    COPY = 2  # a device's memory is copied or set
    OPERATOR = 3  # a framework's operator, on the host
    CALL = 4  # of a device's runtime or driver
    SYNC = 5  # a call in which the host waits for a device
    ANNOTATION = 6  # a range that a user or a library named
    STEP = 7  # one turn of the training loop
    FRAME = 8  # a function of an interpreter
    MESSAGE = 9  # communication on the host: MPI, gloo
    USEFUL = 10  # computation on the host, where a trace states it (Paraver, OTF2)
    IO = 11

    @property
    def is_device(self) -> bool:
        """Return whether a device does it."""
        return self <= Kind.COPY


@dataclass(frozen=True)
class Place:
    """The stream or thread on which events happen."""

    label: str  # as in "stream 7", "thread 2919752 (pt_autograd_0)"
    device: int = NONE  # number of the device in its node; NONE on the host
    thread: int = NONE  # number of the stream or thread, where it is one


@dataclass(frozen=True)
class Group:
    """The ranks among which collectives happen: a communicator, or two ranks of one, of which the first sends."""

    name: str
    ranks: tuple[int, ...] = ()  # empty where the trace does not list them
    size: int = 0  # 0 where the trace does not say
    within: tuple[int, ...] = ()  # of a sender and a receiver: the ranks of their communicator


@dataclass(frozen=True)
class Events:
    """Events in the order of their begin, one array a column, all of one length.

    Raises: InvalidInputError when lengths differ.
    """

    begin_ns: Integers
    duration_ns: Integers
    kind: NDArray[np.uint8]
    name: Codes  # index into the trace's names
    place: Codes  # index into the trace's places
    correlation: Integers  # connects a call with the work that it launched; NONE or positive
    operator: Integers  # id of the operator that it belongs to ("External id"); NONE or positive
    group: Codes  # index into the trace's groups; NONE
    sequence: Integers  # number of a collective in its group, as the trace states it; NONE
    bytes: Integers  # copied or sent; NONE
    flops: NDArray[np.float64]  # NaN where not stated

    def __post_init__(self) -> None:
        """Check the lengths."""
        lengths = {name: len(column) for name, column in self.columns.items()}
        if len(set(lengths.values())) > 1:
            raise InvalidInputError(f"columns of events have lengths {lengths}; expected one length")

    def __len__(self) -> int:
        return len(self.begin_ns)

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """Return the columns by name."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

    @property
    def end_ns(self) -> Integers:
        """Return the ends, nanoseconds."""
        return self.begin_ns + self.duration_ns

    def where(self, chosen: Flags | Integers) -> Self:
        """Return the chosen events only, by a mask or by their positions."""
        return type(self)(**{name: column[chosen] for name, column in self.columns.items()})

    def of(self, *kinds: Kind) -> Self:
        """Return the events of these kinds."""
        return self.where(np.isin(self.kind, np.array(kinds, np.uint8)))

    def on_device(self) -> Self:
        """Return the work of devices: kernels, collectives and copies."""
        return self.where(self.kind <= Kind.COPY)


@dataclass(frozen=True)
class RankTrace:
    """The trace of one rank, times in nanoseconds on that rank's own clock."""

    events: Events
    names: tuple[str, ...]
    places: tuple[Place, ...]
    groups: tuple[Group, ...] = ()
    rank: int | None = None  # None where the trace does not say
    world_size: int | None = None
    node: str = ""
    run: str = ""  # what tells the runs apart: a trace id, a job; empty where the trace does not say
    source: str = ""  # the file
    format: str = ""
    resolution_ns: int = 1  # 1000 where times are whole microseconds
    counters: Mapping[str, float] = field(default_factory=dict)  # totals in useful computation: instructions, cycles
    notes: tuple[str, ...] = ()  # what could not be classified, and assumptions

    @property
    def span(self) -> tuple[int, int]:
        """Return begin and end of the device's work, or of everything where no device is in it, ns; (0, 0) if empty."""
        device = self.events.on_device()
        events = device if len(device) else self.events
        return (int(events.begin_ns.min()), int(events.end_ns.max())) if len(events) else (0, 0)

    def names_of(self, events: Events) -> list[str]:
        """Return the names of events, in their order."""
        return [self.names[code] for code in events.name]

    def launched_within(self) -> Self:
        """Return the trace without a device's work that no call in it launched, as what was queued before it began.

        HolisticTraceAnalysis drops such work always. Where calls are not recorded, or a device launches work itself
        (graphs), this drops work that belongs to the trace; a trace without calls that launch stays whole.
        """
        events = self.events
        is_device = events.kind <= Kind.COPY
        calls = events.correlation[~is_device & (events.correlation != NONE)]
        kept = ~is_device | np.isin(events.correlation, calls)
        return replace(self, events=events.where(kept)) if len(calls) else self

    def moved(self, by_ns: int) -> Self:
        """Return the trace on another clock, which is ahead by so much."""
        return replace(self, events=replace(self.events, begin_ns=self.events.begin_ns + by_ns))
