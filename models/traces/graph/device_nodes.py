"""The activities of a rank with a device: its kernels by stream, and the calls that launch them or wait for them.

Three dependencies are read off the times, as most traces state none: calls follow each other whatever their thread; a
call waits for the device if device's work ends within it; and work that begins long after its launch and after the work
before it on its stream waited for the work of another stream that ended last.
"""

from dataclasses import dataclass

import numpy as np

from crosswind.data.traces.trace import NONE, Events, Flags, Integers, Kind
from crosswind.models.traces.graph.draft import Nodes, depend, joined, last_ended, nodes, previous_in
from crosswind.models.traces.graph.graph import Work
from crosswind.models.traces.launches import launches

LAUNCH_NS = 20_000  # a launch that takes longer is explained by something else
QUEUE_NS = 5_000  # likewise a gap after the work before on the stream
WORKS = np.array([Work.COMPUTE, Work.TRANSFER, Work.COPY], np.uint8)  # by kind


@dataclass(frozen=True)
class _Host:
    """Points on the host, as positions of events: launches at a call's begin, and the edges of calls that wait."""

    launch: Integers
    wait: Integers
    awaited: Integers  # by the waits: numbers of the device's work


def device_nodes(events: Events, collective: Integers) -> tuple[Nodes, int]:
    """Return a rank's activities, and how many waits for another stream were read off the times.

    `collective` is each event's number among matched collectives, (n,), or NONE.
    """
    pairs = launches(events)
    device, host = events.where(pairs.device), _host(events, pairs.device, pairs.call)
    met = collective[pairs.device]
    is_met, zero = met != NONE, np.zeros(len(events), np.int64)
    work = nodes(
        device.begin_ns,
        np.where(is_met, 0, device.duration_ns),
        np.where(is_met, Work.NOTHING, WORKS[device.kind]).astype(np.uint8),
        device.name,
    )
    left = nodes(device.end_ns[is_met], zero[: is_met.sum()], Work.NOTHING, device.name[is_met])
    begins, ends = events.begin_ns, events.end_ns
    points = [begins[host.launch], begins[host.wait], ends[host.wait], _first(events)]
    graph, (of_work, of_left, *of_host) = joined(
        work, left, *(nodes(point, zero[: len(point)], Work.NOTHING) for point in points)
    )
    graph.arrives[of_work] = met
    graph.leaves[of_left] = met[is_met]
    done = of_work.copy()
    done[is_met] = of_left  # what others wait for: that it was left
    _chain_host(graph, of_host, done[host.awaited])
    guessed = _chain_streams(graph, device, of_work, done, launch=_launch_points(pairs.call, host.launch, of_host[0]))
    return graph, guessed


def _first(events: Events) -> Integers:
    """Return the begin of the host's first event, (1,), from which on its calls follow each other; (0,) without."""
    return events.begin_ns[np.flatnonzero(events.kind > Kind.COPY)[:1]]


def _host(events: Events, device: Integers, call: Integers) -> _Host:
    launch = np.unique(call[call != NONE])
    calls = np.flatnonzero(events.kind == Kind.SYNC)
    copies = np.unique(call[(call != NONE) & (events.kind[device] == Kind.COPY)])
    calls = np.union1d(calls, copies)
    awaited = last_ended(events.end_ns[device], events.end_ns[calls])
    is_wait = (awaited != NONE) & (events.end_ns[device][awaited] > events.begin_ns[calls])
    return _Host(launch, calls[is_wait], awaited[is_wait])


def _launch_points(call: Integers, launch: Integers, points: Integers) -> Integers:
    if not len(launch):
        return np.full(len(call), NONE)
    place = np.minimum(np.searchsorted(launch, call), len(launch) - 1)
    return np.where(call == NONE, NONE, points[place])


def _chain_host(graph: Nodes, of_host: list[Integers], awaited: Integers) -> None:
    points, returns = np.concatenate(of_host), of_host[2]
    kinds = np.repeat([2, 3, 1, 0], [len(one) for one in of_host])  # a return comes before a call of its time
    order = points[np.lexsort((kinds, graph.begin_ns[points]))]
    depend(graph, 0, order[1:], order[:-1], work=Work.HOST)
    depend(graph, 1, returns, awaited, work=Work.SYNC)


def _chain_streams(graph: Nodes, device: Events, of_work: Integers, done: Integers, *, launch: Integers) -> int:
    """Set what the device's works wait for. Return how many wait for another stream."""
    ends, begins = device.end_ns, device.begin_ns
    previous = previous_in(device.place, np.arange(len(device)))
    has = previous != NONE
    depend(graph, 0, of_work[has], done[previous[has]], work=Work.QUEUE)
    depend(graph, 1, of_work, launch, work=Work.LAUNCH)
    since_stream = np.where(has, begins - ends[previous], np.iinfo(np.int64).max)
    since_launch = np.where(launch == NONE, np.iinfo(np.int64).max, begins - graph.begin_ns[launch])
    other = last_ended(ends, begins)
    other = np.where(other < np.arange(len(device)), other, NONE)
    is_later = (other != NONE) & (begins - ends[other] < np.minimum(since_stream, since_launch))
    waits: Flags = is_later & (since_launch > LAUNCH_NS) & (since_stream > QUEUE_NS)
    depend(graph, 2, of_work[waits], done[other[waits]], work=Work.QUEUE)
    return int(waits.sum())
