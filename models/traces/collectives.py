"""Collectives matched across ranks.

By communicator and sequence number where a trace states them, else the k-th of a communicator, else the k-th of one
name; a send and its receive are the k-th from one rank to another in a communicator. None of it needs a common clock:
the last rank to arrive waits least, so that the shortest duration is the transfer, and what a rank has over it is its
wait.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from crosswind.data.traces.naming import UNKNOWN, operation_of
from crosswind.data.traces.trace import NONE, Events, Flags, Group, Integers, Kind, RankTrace
from crosswind.models.traces.ranks import absent_notes, ranks_of, text_of

Key: TypeAlias = tuple[Hashable, ...]
BETWEEN_TWO = ("send_receive", UNKNOWN)  # on a host without a communicator
DIRECTED = re.compile(r"(?<![a-z])i?(send|recv)(?![a-z])", re.IGNORECASE)
PAIR = "order from rank to rank"  # of a send and its receive, which need not end together
SHOWN = 5  # of a kind, in notes


@dataclass(frozen=True)
class Collectives:
    """Collectives of several ranks in the order of their first begins; times on each rank's own clock.

    Arrays are (n_collectives, n_ranks); a rank that is not in one has an `event` of NONE, and 0 in the others.
    """

    ranks: tuple[int, ...]
    operation: tuple[str, ...]  # of each collective: "all_reduce", or UNKNOWN
    group: tuple[str, ...]  # name of its communicator; empty where not stated
    basis: tuple[str, ...]  # why they are one: "sequence", "order in communicator", PAIR, "order of name"
    event: Integers  # position among the trace's events
    begin_ns: Integers
    duration_ns: Integers
    bytes: Integers  # (n_collectives,), of one rank; NONE
    missing: tuple[tuple[int, ...], ...]  # ranks that should be in it, and are not traced or have none
    locations: str  # "device" or "host"
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.operation)

    @property
    def is_in(self) -> Flags:
        """Return which ranks are in which, (n_collectives, n_ranks)."""
        return np.asarray(self.event != NONE)

    @property
    def end_ns(self) -> Integers:
        """Return the ends, (n_collectives, n_ranks)."""
        return self.begin_ns + self.duration_ns

    @property
    def transfer_ns(self) -> Integers:
        """Return the shortest durations, (n_collectives,): of the last to arrive."""
        longest = np.iinfo(np.int64).max
        return np.asarray(np.where(self.is_in, self.duration_ns, longest).min(axis=1, initial=longest))

    @property
    def wait_ns(self) -> Integers:
        """Return durations over the transfer, (n_collectives, n_ranks)."""
        return np.where(self.is_in, self.duration_ns - self.transfer_ns[:, None], 0)


def collectives(traces: Sequence[RankTrace]) -> Collectives:
    """Match the collectives of devices, or of hosts if no device has one. Raises: InvalidInputError as `ranks_of`."""
    ranks = ranks_of(traces)
    kind = Kind.COLLECTIVE if any(np.any(one.events.kind == Kind.COLLECTIVE) for one in traces) else Kind.MESSAGE
    members: dict[Key, dict[int, int]] = defaultdict(dict)
    skipped: Counter[str] = Counter()
    for column, trace in enumerate(traces):
        for key, event in _keys(trace, kind, skipped).items():
            members[key][column] = event
    return _matched(traces, ranks, members, (kind, skipped))


def _keys(trace: RankTrace, kind: Kind, skipped: Counter[str]) -> dict[Key, int]:
    """Return the events of one rank by what they share with those of the others."""
    keys: dict[Key, int] = {}
    order: Counter[Key] = Counter()
    events = trace.events
    positions = np.flatnonzero(events.kind == kind)
    columns = (events.name[positions], events.group[positions], events.sequence[positions])
    operations = {code: operation_of(trace.names[code]) for code in np.unique(columns[0]).tolist()}
    for event, name, group, sequence in zip(positions.tolist(), *(one.tolist() for one in columns), strict=True):
        facts = trace.groups[group] if group != NONE else None
        communicator = (facts.name, facts.ranks) if facts else None
        if _is_between_two(trace.names[name], operations[name], facts, kind):
            skipped[trace.names[name]] += 1
            continue
        series: Key = (communicator, PAIR if facts.within else "k-th") if facts else (None, "k-th", trace.names[name])
        if facts and sequence != NONE and not facts.within:  # a rank numbers what it sends and receives by itself
            series = (communicator, operations[name], sequence)
        keys[*series, order[series]] = event  # numbers may begin again, as in each step of a table
        order[series] += 1
    return keys


def _is_between_two(name: str, operation: str, group: Group | None, kind: Kind) -> bool:
    """Return whether it may be of two ranks alone, and not said of which."""
    if group is None:
        return kind == Kind.MESSAGE and operation in BETWEEN_TWO
    return DIRECTED.search(name) is not None and 2 not in (group.size, len(group.ranks))


def _matched(
    traces: Sequence[RankTrace],
    ranks: tuple[int, ...],
    members: Mapping[Key, Mapping[int, int]],
    left_out: tuple[Kind, Counter[str]],
) -> Collectives:
    event = np.full((len(members), len(traces)), NONE, np.int64)
    for row, events in enumerate(members.values()):
        event[row, list(events)] = list(events.values())
    begin, duration = (_values(traces, event, name) for name in ("begin_ns", "duration_ns"))
    first = np.where(event == NONE, np.iinfo(np.int64).max, begin).min(axis=1, initial=np.iinfo(np.int64).max)
    order = np.argsort(first, kind="stable")
    keys = [list(members)[row] for row in order.tolist()]
    event = event[order]
    operation = tuple(_operation(traces, row) for row in event)
    missing = tuple(_missing(key, row, ranks) for key, row in zip(keys, event, strict=True))
    return Collectives(
        ranks,
        operation,
        tuple(key[0][0] if isinstance(key[0], tuple) else "" for key in keys),
        tuple(_basis(key) for key in keys),
        event,
        begin[order],
        duration[order],
        _values(traces, event, "bytes").max(axis=1, initial=NONE),
        missing,
        "device" if left_out[0] == Kind.COLLECTIVE else "host",
        (*absent_notes(traces), *_notes(operation, missing, left_out[1])),
    )


def _values(traces: Sequence[RankTrace], event: Integers, name: str) -> Integers:
    """Return a column's values at events, (n_collectives, n_ranks); 0 where a rank is not in one."""
    values: Integers = np.zeros(event.shape, np.int64)
    for column, trace in enumerate(traces):
        is_in = event[:, column] != NONE
        values[is_in, column] = getattr(trace.events, name)[event[is_in, column]]
    return values


def _basis(key: Key) -> str:
    if PAIR in key:
        return PAIR
    if "k-th" not in key:
        return "sequence"
    return "order in communicator" if isinstance(key[0], tuple) else "order of name"


def _operation(traces: Sequence[RankTrace], row: Integers) -> str:
    column = int(np.argmax(row != NONE))
    events: Events = traces[column].events
    return operation_of(traces[column].names[events.name[row[column]]])


def _missing(key: Key, row: Integers, ranks: tuple[int, ...]) -> tuple[int, ...]:
    """Return ranks of the communicator, or of the traces, that have no event in a row."""
    expected = key[0][1] if isinstance(key[0], tuple) and key[0][1] else ranks
    return tuple(sorted(set(expected) - {rank for rank, event in zip(ranks, row, strict=True) if event != NONE}))


def _notes(operation: Sequence[str], missing: Sequence[tuple[int, ...]], skipped: Counter[str]) -> list[str]:
    notes = [f"{UNKNOWN}: {operation.count(UNKNOWN)} of {len(operation)} collectives"] if UNKNOWN in operation else []
    lacks = Counter(one for one in missing if one)
    notes += [f"{count} collectives without {text_of(one)}" for one, count in lacks.most_common(SHOWN)]
    if skipped:
        names = ", ".join(name for name, _ in skipped.most_common(SHOWN))
        notes.append(f"{skipped.total()} messages whose partners are not stated are not matched ({names})")
    return notes
