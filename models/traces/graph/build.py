"""Builds the graph of a run: the activities of each rank, joined where collectives meet."""

from collections.abc import Sequence

import numpy as np

from crosswind.data.traces.columns import Codes as Numbers
from crosswind.data.traces.trace import NONE, Codes, Integers, Kind, RankTrace
from crosswind.models.traces.clocks import Clocks, aligned, clocks
from crosswind.models.traces.collectives import Collectives, collectives
from crosswind.models.traces.graph.device_nodes import device_nodes
from crosswind.models.traces.graph.draft import Nodes
from crosswind.models.traces.graph.graph import Activities, Graph
from crosswind.models.traces.graph.host_nodes import Moments, host_nodes
from crosswind.models.traces.graph.joins import together
from crosswind.models.traces.graph.order import in_order
from crosswind.models.traces.ranks import text_of
from crosswind.models.traces.steps import turns

PROBE = "probe"  # the format of the probe's steps


def graph(traces: Sequence[RankTrace], matched: Collectives | None = None, offsets: Clocks | None = None) -> Graph:
    """Return the graph of the traces of one run. Raises: InvalidInputError as `ranks_of`."""
    matched = collectives(traces) if matched is None else matched
    offsets = clocks(traces, matched) if offsets is None else offsets
    moved, residual = aligned(traces, offsets), float(np.nan_to_num(offsets.residual_ns).max(initial=0))
    drafts, names, notes = _drafts(moved, matched, offsets)
    whole, column = together(drafts, len(matched), residual)
    order, left_out = in_order(whole.begin_ns, whole.before)
    if left_out:
        notes.append(f"{left_out} dependencies against the order of time are left out")
    steps = turns(moved[0])
    activities = _activities(whole, column, order, moved)
    return Graph(matched.ranks, names, activities, max(1, len(steps)), (*matched.notes, *offsets.notes, *notes))


def _drafts(
    traces: Sequence[RankTrace], matched: Collectives, offsets: Clocks
) -> tuple[list[Nodes], tuple[str, ...], list[str]]:
    """Return the activities of each rank, and the names that their codes mean."""
    meets, numbers = matched.is_in.sum(axis=1) > 1, Numbers[str]()
    drafts, notes, guessed = [], [], []
    limits = np.iinfo(np.int64)
    first_end = np.where(matched.is_in, offsets.on_first(matched.end_ns), limits.max).min(axis=1)
    last_arrival = np.where(matched.is_in, offsets.on_first(matched.begin_ns), limits.min).max(axis=1)
    moments = Moments(last_arrival, last_arrival + matched.transfer_ns, first_end)
    for column, trace in enumerate(traces):
        collective: Integers = np.full(len(trace.events), NONE, np.int64)
        rows = np.flatnonzero(meets & matched.is_in[:, column])
        collective[matched.event[rows, column]] = rows
        codes: Codes = np.array([*numbers.of(trace.names), NONE], np.int32)
        if np.any(trace.events.kind <= Kind.COPY):
            draft, count = device_nodes(trace.events, collective)
            guessed += [matched.ranks[column]] * bool(count)
        else:
            draft = host_nodes(trace.events, collective, moments, is_whole=trace.format == PROBE)
        draft.name[:] = codes[draft.name]
        drafts.append(draft)
    if guessed:
        notes.append(f"{text_of(guessed)}: which streams wait for which is read off the times")
    return drafts, tuple(numbers.number_of), notes


def _activities(whole: Nodes, column: Codes, order: Integers, traces: Sequence[RankTrace]) -> Activities:
    """Return activities in their order, from the first begin on, with the parts and steps of their ranks."""
    part, step = np.zeros(len(whole), np.int32), np.zeros(len(whole), np.int32)
    for rank, trace in enumerate(traces):
        mine = np.flatnonzero(column == rank)
        arrivals = np.sort(whole.begin_ns[mine[whole.arrives[mine] != NONE]])
        part[mine] = np.searchsorted(arrivals, whole.begin_ns[mine], side="left")
        step[mine] = np.searchsorted(turns(trace).begin_ns, whole.begin_ns[mine], side="right")
    place = np.empty(len(whole) + 1, np.int32)
    place[order], place[-1] = np.arange(len(whole)), NONE
    return Activities(
        whole.begin_ns[order] - (whole.begin_ns.min() if len(whole) else 0),
        whole.duration_ns[order],
        whole.work[order],
        column[order],
        whole.name[order],
        part[order],
        step[order],
        place[whole.before[order]],
        whole.lag_work[order],
    )
