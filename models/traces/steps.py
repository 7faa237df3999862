"""Parts of a trace by the turns of the training loop that it marks."""

from dataclasses import replace

import numpy as np

from crosswind.data.traces.trace import NONE, Events, Flags, Integers, Kind, RankTrace

OPTIMIZER = "Optimizer.step#"  # as torch.profiler names a step of any optimizer


def steps(trace: RankTrace) -> Events:
    """Return the marked turns in time's order, one event each; none where the trace marks none."""
    return trace.events.of(Kind.STEP)


def turns(trace: RankTrace) -> Events:
    """Return the marked steps; where none are, those that the optimizer's ranges end. Empty without both.

    Such a step lasts from the end of one range to that of the next, the first one from the first event on.
    """
    marked = steps(trace)
    return marked if len(marked) else _ended_by(optimizer_ranges(trace), trace)


def optimizer_ranges(trace: RankTrace) -> Events:
    """Return the ranges of the first of a trace's optimizers, in time's order."""
    return trace.events.where(optimizer_in(trace))


def optimizer_in(trace: RankTrace) -> Integers:
    """Return their positions among the trace's events."""
    events = trace.events
    is_optimizer = np.array([name.startswith(OPTIMIZER) for name in trace.names], bool)
    named = np.flatnonzero((events.kind == Kind.ANNOTATION) | (events.kind == Kind.OPERATOR))
    ranges: Integers = named[is_optimizer[events.name[named]]]
    return ranges[events.name[ranges] == events.name[ranges[:1]]] if len(ranges) else ranges


def _ended_by(ranges: Events, trace: RankTrace) -> Events:
    ends = np.sort(ranges.end_ns)
    begins = np.append(trace.events.begin_ns[:1], ends[:-1])[: len(ends)]
    return replace(ranges, begin_ns=begins, duration_ns=ends - begins)


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
