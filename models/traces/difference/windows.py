"""The steps of one rank as windows that follow one another without gaps, on the device or, without one, on the host."""

from dataclasses import dataclass

import numpy as np

from crosswind.data.traces.trace import NONE, Events, Integers, Kind, RankTrace
from crosswind.models.traces.launches import launches
from crosswind.models.traces.steps import optimizer_ranges, steps, turns

FEWEST = 3  # windows, of which the last one is left out: recording ends before the next step begins


@dataclass(frozen=True)
class Windows:
    """Windows between consecutive edges, (n_windows + 1,), ns."""

    edges: Integers
    notes: tuple[str, ...] = ()


def windows(trace: RankTrace) -> Windows:
    """Return the windows of a trace: from the first work that one step launched to the first that the next one did."""
    if not len(trace.events):
        return Windows(np.zeros(2, np.int64), ("a trace is empty",))
    edges = np.unique(_placed(trace, _marks(trace)))
    if len(edges) < 2:
        return Windows(np.array(trace.span, np.int64), ("no steps are marked: the whole trace counts as one step",))
    if len(edges) <= FEWEST:
        return Windows(edges)
    return Windows(edges[:-1], ("the last step is left out: recording ends before the next one begins",))


def step_edges(trace: RankTrace) -> Integers:
    """Return where each step begins and the last one ends, on the device if there is one; empty without any."""
    return _placed(trace, _edges(turns(trace)))


def _marks(trace: RankTrace) -> Integers:
    """Return the edges of marked steps, else the begins of the optimizer's ranges, between which steps are whole."""
    marked = steps(trace)
    return _edges(marked) if len(marked) else optimizer_ranges(trace).begin_ns


def _edges(marked: Events) -> Integers:
    return np.append(marked.begin_ns, marked.end_ns.max()) if len(marked) else np.empty(0, np.int64)


def _placed(trace: RankTrace, edges: Integers) -> Integers:
    """Return edges where the device comes to them, if there is one."""
    return _on_device(trace.events, edges) if np.any(trace.events.kind <= Kind.COPY) else edges


def _on_device(events: Events, marks: Integers) -> Integers:
    """Return when the device begins what was launched from each mark on; where nothing was, when it ends all."""
    pairs = launches(events)
    is_launched = pairs.call != NONE
    if not is_launched.any():
        return marks
    device, called = pairs.device[is_launched], events.begin_ns[pairs.call[is_launched]]
    order = np.argsort(called, kind="stable")
    first = np.minimum.accumulate(events.begin_ns[device][order][::-1])[::-1]
    followed = np.append(first, events.end_ns[device].max())
    return np.asarray(followed[np.searchsorted(called[order], marks)])
