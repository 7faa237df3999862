"""A run replayed without each of its likely causes, those that would save most first."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from crosswind.data.traces.trace import RankTrace
from crosswind.models.traces.critical_path import path_of
from crosswind.models.traces.graph.build import graph as graph_of
from crosswind.models.traces.graph.graph import Graph
from crosswind.models.traces.what_if.causes import (
    communication_free,
    peers_of,
    rank_as_peers,
    sequences_equal,
    stage_balanced,
)
from crosswind.models.traces.what_if.step_table import operations_of, table_what_ifs
from crosswind.models.traces.what_if.what_if import Cause, WhatIf, what_if_each

TABLE = "step_table"
RANKS = 8  # replayed one by one: those longest on the critical path


def what_ifs_of(
    traces: Sequence[RankTrace],
    stages: Mapping[int, int] | None = None,
    graph: Callable[[], Graph] | None = None,
) -> tuple[WhatIf, ...]:
    """Return the replays of traces, whose graph may be given; of a table of operations those of the table, whose
    transfers a graph cannot join.

    Raises: InvalidInputError as `what_ifs` and `ranks_of`.
    """
    if is_table(traces):
        return table_what_ifs(operations_of(traces, stages))
    return what_ifs(graph_of(traces) if graph is None else graph(), stages)


def is_table(traces: Sequence[RankTrace]) -> bool:
    """Return whether traces are a table of operations."""
    return bool(traces) and all(trace.format == TABLE for trace in traces)


def what_ifs(graph: Graph, stages: Mapping[int, int] | None = None) -> tuple[WhatIf, ...]:
    """Return the replays of a graph without slow ranks, unequal stages and sequences, and transfers.

    Raises: InvalidInputError when a traced rank has no stage, though others have.
    """
    chosen: list[Cause] = [communication_free]
    if len(graph.ranks) > 1:
        chosen += [sequences_equal(stages), *_ranks(graph, stages)]
    if stages and len(set(stages.values())) > 1:
        chosen.append(stage_balanced(stages))
    return tuple(sorted(what_if_each(graph, chosen), key=lambda one: one.replayed_ns))


def _ranks(graph: Graph, stages: Mapping[int, int] | None) -> list[Cause]:
    """Return the ranks longest on the critical path that have peers."""
    on_path = path_of(graph).by_rank
    comparable = [rank for rank in on_path if peers_of(graph, rank, stages)]
    order = np.argsort([-on_path[rank] for rank in comparable], kind="stable")[:RANKS].tolist()
    return [rank_as_peers(comparable[one], stages) for one in order]
