"""Traces with the events alone that analyses of several ranks at once read, a third of all, in few columns.

Collectives, clocks, arrivals, the graph of activities and what it replays are the same as of the whole trace.
"""

from dataclasses import replace

import numpy as np

from crosswind.data.traces.trace import NONE, Events, Flags, Integers, Kind, RankTrace
from crosswind.models.traces.launches import launches
from crosswind.models.traces.nesting import parents
from crosswind.models.traces.steps import optimizer_in
from crosswind.models.traces.what_if.survey import TABLE

ON_HOST = (Kind.OPERATOR, Kind.USEFUL, Kind.MESSAGE, Kind.IO)  # of which activities of a host are made
UNREAD = ("operator", "flops")
NUMBERS = ("correlation", "sequence", "bytes")  # mostly small, or the same in all events
SMALL = np.iinfo(np.int32)


def compact(trace: RankTrace) -> RankTrace:
    """Return the trace with what is read together with other ranks'. A table of operations stays whole."""
    if trace.format == TABLE:
        return trace
    events = trace.events.where(_is_read(trace))
    is_used = np.zeros(len(trace.names), bool)
    is_used[events.name] = True
    codes, number = np.flatnonzero(is_used), np.cumsum(is_used, dtype=np.int32) - 1
    columns = events.columns | {"name": number[events.name]}
    columns |= {number: _narrow(columns[number]) for number in NUMBERS}
    columns |= {unread: _one(columns[unread]) for unread in UNREAD}
    return replace(trace, events=Events(**columns), names=tuple(trace.names[code] for code in codes.tolist()))


def _is_read(trace: RankTrace) -> Flags:
    events = trace.events
    is_read = np.isin(events.kind, np.array([Kind.STEP, Kind.MESSAGE], np.uint8))
    is_read[optimizer_in(trace)] = True
    is_read[:1] = True  # from which on its first step lasts
    if not np.any(events.kind <= Kind.COPY):
        is_read[_outermost(events)] = True
        return is_read
    call = launches(events).call
    is_read |= (events.kind <= Kind.COPY) | (events.kind == Kind.SYNC)
    is_read[call[call != NONE]] = True
    is_read[np.flatnonzero(events.kind > Kind.COPY)[:1]] = True  # from which on calls follow each other
    return is_read


def _outermost(events: Events) -> Integers:
    """Return the positions of what is in no other range of a host."""
    rows = np.flatnonzero(np.isin(events.kind, np.array(ON_HOST, np.uint8)))
    return np.asarray(rows[parents(events, rows) == NONE])


def _narrow(column: Integers) -> Integers:
    """Return the same numbers, one for all where they are equal, in half of the bytes where these do."""
    if not len(column) or (column == column[0]).all():
        return _one(column)
    fits = SMALL.min <= column.min() and column.max() <= SMALL.max
    return column.astype(np.int32) if fits else column  # compared with others, no more


def _one(column: np.ndarray) -> np.ndarray:
    """Return its first value in all places, which takes no memory."""
    return np.broadcast_to(column[:1].copy(), len(column)) if len(column) else column
