"""Slow node: the node of the last rank is slower than its peers in other runs, too."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from crosswind.data.schema.answers.stragglers import PeerKind, RankedPeer
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run
from crosswind.models.explain.causes.cause import Excess, Observed, at_most
from crosswind.models.explain.evidence.indicators import ComparedRun, ComputeLost
from crosswind.models.stragglers.by_ranks import ranked_by_ranks
from crosswind.models.stragglers.ranking import FEWEST_RUNS

COLUMNS = ["run_id", "system", "place", "node", "started_ns", "log_local"]


def slow_node_shares(runs: Sequence[ComparedRun]) -> dict[str, dict[int, float]]:
    """Return by run id and rank the share of its compute that its node costs; 0 on a node like the others.

    By the shrunken effect of each node on the work of its ranks against the others of a run (models/stragglers). A
    node counts where it is named a straggler by four runs at least, this one among them, and since then. Runs on one
    node are left out.
    """
    table = pd.DataFrame([row for compared in runs for row in _rows(compared)], columns=COLUMNS).assign(device=None)
    if not len(table):
        return {}
    ranked, _, _ = ranked_by_ranks(table, np.zeros(len(table), np.int64), {})
    slow = {
        (node.system, node.name): node
        for node in ranked
        if node.kind is PeerKind.NODE and node.named and node.runs > FEWEST_RUNS
    }
    compared_ids = set(table["run_id"])
    return {
        compared.run.run_id: {
            rank: _share(slow.get((compared.run.system, compared.nodes.get(rank, ""))), compared.run)
            for rank in compared.work
        }
        for compared in runs
        if compared.run.run_id in compared_ids
    }


def _rows(compared: ComparedRun) -> list[tuple[object, ...]]:
    """Return a row of COLUMNS for each rank of a run on several nodes, as `local_times` of stragglers does."""
    run = compared.run
    work = {rank: seconds for rank, seconds in compared.work.items() if seconds > 0 and rank in compared.nodes}
    if run.started_ns is None or len({compared.nodes[rank] for rank in work}) < 2:
        return []
    place = f"{run.workload}, {len(compared.work)} ranks, rank"
    return [
        (run.run_id, run.system, f"{place} {rank}", compared.nodes[rank], run.started_ns, np.log(seconds))
        for rank, seconds in work.items()
    ]


def _share(node: RankedPeer | None, run: Run) -> float:
    """Return the share of its compute that a rank would have saved on a node like the others."""
    if node is None or (node.since_ns or 0) > (run.started_ns or 0):
        return 0.0
    return max(1 - 1 / node.ratio, 0.0)


class SlowNode:
    """Claims compute in proportion to the node's shrunken effect on its ranks, where it is named a straggler.

    Source: models/stragglers/effects.py.
    """

    name = "slow_node"
    next_action = (
        "Leave the node out (#SBATCH --exclude=NODE; crosswind stragglers names it). Have it tested: clocks, memory "
        "channels, firmware settings."
    )
    columns = ("slow_node",)
    indicators = (ComputeLost("slow_node", slow_node_shares),)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute, where the rank did not wait for a core."""
        return {"compute": at_most(excess["slow_node"], excess.work)}

    def evidence(self, observed: Observed) -> str:
        """Return the cost of the node."""
        measured, expected = observed.milliseconds("slow_node")
        return f"its node is a straggler in this cohort's runs: {measured} a step, expected {expected}"
