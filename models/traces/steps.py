"""Parts of a trace by the turns of the training loop that it marks."""

from dataclasses import replace

import numpy as np

from crosswind.data.traces.trace import NONE, Events, Flags, Integers, Kind, RankTrace

OPTIMIZER = "Optimizer.step#"  # as torch.profiler names a step of any optimizer


def steps(trace: RankTrace) -> Events:
    """Return the marked turns in time's order, one event each; none where the trace marks none."""
    return trace.events.of(Kind.STEP)


def turns(trace: RankTrace) -> Events:
    """Return the marked steps, or the optimizer's where none are marked; empty without both."""
    return trace.events.where(turns_in(trace))


def turns_in(trace: RankTrace) -> Integers:
    """Return the positions of the turns among the trace's events."""
    events = trace.events
    marked = np.flatnonzero(events.kind == Kind.STEP)
    if len(marked):
        return marked
    is_optimizer = np.array([name.startswith(OPTIMIZER) for name in trace.names], bool)
    named = np.flatnonzero((events.kind == Kind.ANNOTATION) | (events.kind == Kind.OPERATOR))
    return np.asarray(named[is_optimizer[events.name[named]]])


def without_last_step(trace: RankTrace) -> RankTrace:
    """Return the trace without what the last step launched, which recording may have cut short.

    A trace that marks no steps, or one, stays whole. As HolisticTraceAnalysis does it by default.
    """
    marked = steps(trace)
    if len(marked) < 2:
        return trace
    events, last_ns = trace.events, int(marked.begin_ns.max())
    is_device = events.kind <= Kind.COPY
    kept = np.where(is_device, ~_is_launched_from(events, last_ns), events.begin_ns < last_ns)
    return replace(trace, events=events.where(kept))


def _is_launched_from(events: Events, ns: int) -> Flags:
    """Return which events have the correlation of a call from that time on."""
    is_call = (events.kind > Kind.COPY) & (events.correlation != NONE) & (events.begin_ns >= ns)
    late: Integers = events.correlation[is_call]
    return np.isin(events.correlation, late)
