"""The activities of a rank without a device: its outermost operators or useful states, and its messages.

An operator follows the one that ended last before it on any thread. It waits for a message whose last rank arrived in
the gap between, or else whose data came then: threads that send may be late to record either. In the
probe's steps it holds the rank up until its data came: as long after the last arrival as the rank that waits least is
in it. An operator in which a message begins is cut there.
"""

from dataclasses import dataclass, replace

import numpy as np

from crosswind.data.traces.trace import NONE, Events, Flags, Integers, Kind
from crosswind.models.traces.graph.draft import Nodes, depend, joined, last_ended, nodes, previous_in
from crosswind.models.traces.graph.graph import Work
from crosswind.models.traces.nesting import parents


@dataclass(frozen=True)
class Moments:
    """Moments of collectives, (n,) ns each: the last rank arrives, the data came, the first rank leaves."""

    last_arrival: Integers
    data_came: Integers
    first_end: Integers

    def of(self, rows: Integers) -> "Moments":
        """Return those of some collectives."""
        return Moments(self.last_arrival[rows], self.data_came[rows], self.first_end[rows])


def host_nodes(events: Events, collective: Integers, moments: Moments, *, is_whole: bool = False) -> Nodes:
    """Return a rank's activities.

    `collective` is each event's number among matched collectives, (n,), or NONE; their moments are on its clock.
    `is_whole` says that a message stands for all communication that its thread waited for, as in the probe's steps.
    """
    chosen = np.isin(events.kind, (Kind.OPERATOR, Kind.USEFUL, Kind.MESSAGE, Kind.IO))
    events, collective = events.where(chosen), collective[chosen]
    outermost = (parents(events) == NONE) | (collective != NONE)
    mine, met = _cut(events.where(outermost), collective[outermost])
    is_met, is_message = met != NONE, mine.kind == Kind.MESSAGE
    left_ns = _left(mine, is_met, moments.of(met[is_met]), is_whole=is_whole)
    works = np.where(is_message, Work.TRANSFER, np.where(mine.kind == Kind.IO, Work.COPY, Work.OPERATOR))
    works = np.where(is_met, Work.NOTHING, works).astype(np.uint8)
    work = nodes(mine.begin_ns, np.where(is_met, 0, mine.duration_ns), works, mine.name)
    graph, (of_work, of_left) = joined(work, nodes(left_ns, np.zeros_like(left_ns), Work.NOTHING, mine.name[is_met]))
    graph.arrives[of_work], graph.leaves[of_left] = met, met[is_met]
    done = of_work.copy()
    done[is_met] = of_left
    durations = mine.duration_ns.copy()
    durations[is_met] = left_ns - mine.begin_ns[is_met]
    _chain(graph, replace(mine, duration_ns=durations), of_work, done)
    return graph


def _cut(events: Events, collective: Integers) -> tuple[Events, Integers]:
    """Return events with those of other kinds cut where a message begins in them; and their collectives."""
    is_message = events.kind == Kind.MESSAGE
    rest, times = events.where(~is_message), events.begin_ns[is_message]
    within = np.searchsorted(rest.begin_ns, times) - 1
    inside = (within >= 0) & (rest.end_ns[within] > times) if len(rest) else np.zeros(len(times), bool)
    owner = np.concatenate([np.arange(len(rest)), within[inside]])
    begins = np.concatenate([rest.begin_ns, times[inside]])
    order = np.lexsort((begins, owner))
    owner, begins = owner[order], begins[order]
    is_last = np.append(owner[1:] != owner[:-1], True)[: len(owner)]
    ends = np.where(is_last, rest.end_ns[owner], np.append(begins[1:], 0)[: len(owner)])
    pieces = replace(rest.where(owner), begin_ns=begins, duration_ns=ends - begins)
    messages = events.where(is_message)
    both = Events(**{name: np.concatenate([column, messages.columns[name]]) for name, column in pieces.columns.items()})
    by_time = np.argsort(both.begin_ns, kind="stable")
    met = np.concatenate([collective[~is_message][owner], collective[is_message]])
    return both.where(by_time), met[by_time]


def _left(mine: Events, is_met: Flags, moments: Moments, *, is_whole: bool) -> Integers:
    """Return when each matched message is done for what waits for it, (n_matched,)."""
    operators, messages, arrived = mine.where(mine.kind != Kind.MESSAGE), mine.where(is_met), moments.last_arrival
    begun, ended = (
        np.searchsorted(np.sort(edges), arrived, side="right") for edges in (operators.begin_ns, operators.end_ns)
    )
    done = moments.data_came if is_whole else np.where(begun > ended, moments.first_end, arrived)
    return np.clip(done, messages.begin_ns, messages.end_ns)


def _chain(graph: Nodes, mine: Events, of_work: Integers, done: Integers) -> None:
    previous, ends, is_message = previous_in(mine.place, np.arange(len(mine))), mine.end_ns, mine.kind == Kind.MESSAGE
    has = previous != NONE
    depend(graph, 0, of_work[has], done[previous[has]], work=Work.HOST)
    for way, rows in ((1, np.flatnonzero(~is_message)), (2, np.flatnonzero(is_message))):
        place = last_ended(ends[rows], mine.begin_ns)
        before = np.where(place == NONE, NONE, rows[place] if len(rows) else NONE)
        is_new = (before != NONE) & (before < np.arange(len(mine))) & (before != previous)
        if way == 2:  # messages hold up operators alone, and only those that begin after them
            is_new &= ~is_message & (ends[before] >= np.where(has, ends[previous], ends[before]))
        depend(graph, way, of_work[is_new], done[before[is_new]], work=Work.HOST if way == 1 else Work.TRANSFER)
