"""The share of a rank's time that its node costs, which is slower than its peers in other runs, too."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from crosswind.data.schema.answers.stragglers import PeerKind, RankedPeer
from crosswind.data.schema.run import Rank, Run
from crosswind.models.explain.segments import COLUMNS, Segments
from crosswind.models.stragglers.by_ranks import ranked_by_ranks
from crosswind.models.stragglers.ranking import FEWEST_RUNS

COMPUTE, SLOW_NODE = COLUMNS.index("compute"), COLUMNS.index("slow_node")


def of_slow_nodes(
    runs: Sequence[Run], segments: Mapping[str, Segments], ranks: Sequence[Rank]
) -> Iterator[tuple[str, dict[int, float]]]:
    """Run id, and of each rank the share of its compute for which its node is to blame; 0 on a node like the others.

    By the shrunken effect of each node on the work of its ranks beside the others of a run (models/stragglers). A node
    counts where it is named a straggler by four runs at least, this one among them, and since then. Only of runs on
    several nodes.
    """
    node = {(rank.run_id, rank.rank): rank.node for rank in ranks}
    recorded = {run.run_id: run for run in runs if run.run_id in segments and run.started_ns is not None}
    table = _table(recorded, segments, node)
    if not len(table):
        return
    ranked, _, _ = ranked_by_ranks(table, np.zeros(len(table), np.int64), {})
    slow = {
        (candidate.system, candidate.name): candidate
        for candidate in ranked
        if candidate.kind is PeerKind.NODE and candidate.named and _is_seen(candidate)
    }
    for run_id in table["run_id"].unique():
        run = recorded[run_id]
        yield (
            run_id,
            {rank: _lost(slow.get((run.system, node.get((run_id, rank), ""))), run) for rank in segments[run_id].work},
        )


def put_slow_nodes(segments: Segments, lost: Mapping[int, float]) -> None:
    """Writes down the seconds that these shares are: of the rank that came last, and of each rank."""
    of_last = np.array([lost[int(rank)] for rank in segments.culprits])
    segments.values[:, SLOW_NODE] = segments.values[:, COMPUTE] * of_last
    if len(segments.of_ranks):
        segments.of_ranks[:, SLOW_NODE] = segments.of_ranks[:, COMPUTE] * list(lost.values())


def _is_seen(node: RankedPeer) -> bool:
    return node.runs > FEWEST_RUNS


def _lost(node: RankedPeer | None, run: Run) -> float:
    """The share of its compute that the rank would have saved on a node like the others."""
    if node is None or (node.since_ns or 0) > (run.started_ns or 0):
        return 0.0
    return max(1 - 1 / node.ratio, 0.0)


def _table(
    runs: Mapping[str, Run], segments: Mapping[str, Segments], node: Mapping[tuple[str, int], str]
) -> pd.DataFrame:
    """As `local_times`: one row a rank of every run on several nodes."""
    rows = []
    for run_id, run in runs.items():
        work = {
            rank: seconds for rank, seconds in segments[run_id].work.items() if seconds > 0 and (run_id, rank) in node
        }
        if len({node[run_id, rank] for rank in work}) > 1:
            of = f"{run.workload}, {segments[run_id].ranks} ranks, rank"
            rows += [
                (run_id, run.system, f"{of} {rank}", node[run_id, rank], run.started_ns, np.log(seconds))
                for rank, seconds in work.items()
            ]
    table = pd.DataFrame(rows, columns=["run_id", "system", "place", "node", "started_ns", "log_local"])
    return table.assign(device=None)
