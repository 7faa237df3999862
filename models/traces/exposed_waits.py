"""Exposed waits of each rank by step: in collectives, for the last rank to arrive, while nothing is computed."""

from collections.abc import Sequence

import numpy as np

from crosswind.data.traces.trace import Integers, Kind, RankTrace
from crosswind.models.traces.breakdown import intervals
from crosswind.models.traces.collectives import Collectives
from crosswind.models.traces.difference.windows import step_edges
from crosswind.models.traces.occupancy import busy_within, occupancy


def step_waits(traces: Sequence[RankTrace], matched: Collectives) -> list[tuple[int, ...]]:
    """Return the exposed waits of each rank in each of its steps, ns; none where no steps are marked."""
    return [_of_rank(trace, matched, column) for column, trace in enumerate(traces)]


def _of_rank(trace: RankTrace, matched: Collectives, column: int) -> tuple[int, ...]:
    edges: Integers = step_edges(trace)
    rows = np.flatnonzero(matched.is_in[:, column] & (matched.is_in.sum(axis=1) > 1))
    if len(edges) < 2:
        return ()
    begins = trace.events.begin_ns[matched.event[rows, column]]
    waits = begins, begins + matched.wait_ns[rows, column]
    computing = (Kind.KERNEL,) if matched.locations == "device" else (Kind.OPERATOR, Kind.USEFUL)
    span = int(edges[0]), max(int(edges[0]), int(edges[-1]))
    pieces = occupancy(span, {"wait": waits, "compute": intervals(trace.events, *computing)})
    is_exposed = pieces.busy["wait"] & ~pieces.busy["compute"]
    return tuple(busy_within(edges, pieces, is_exposed).tolist())
