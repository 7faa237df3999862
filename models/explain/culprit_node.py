"""Choice of the node to look at: the culprit's, or the one whose links show most of the cause."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from crosswind.data.schema.answers.explanations import Explanation
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.columns import LINK_EVIDENCE
from crosswind.models.explain.cohort.step_rows import spans_of
from crosswind.models.explain.evidence.node_rates import rates_during

CLEAR_RATIO = 1.5  # of a node's share to the next one's
EXCLUDE = "--exclude=NODE"
LOOKED_AT_RUNS = 1000  # newest of the system, among whose nodes another one is sought
NOTHING_ELSE = "Have that node tested: it is the only one, so no job can go elsewhere."


def with_node(store: Store, run: Run, explanation: Explanation) -> Explanation:
    """Return the explanation with its node; nobody is advised to leave out the only one. Raises: MalformedError."""
    explanation = at_node(explanation, culprit_node(store, run, explanation))
    if "--exclude=" in explanation.next_action and _is_only_node(store, run):
        kept = [said for said in re.split(r"(?<=\.) ", explanation.next_action) if "--exclude=" not in said]
        return replace(explanation, next_action=" ".join(kept) or NOTHING_ELSE)
    return explanation


def _is_only_node(store: Store, run: Run) -> bool:
    """Return whether no run of the system ran on a node that this one did not; False where nodes are unknown."""
    with store.catalog.read() as session:
        nodes = session.runs.nodes_of_newest(run.system, limit=LOOKED_AT_RUNS)
    return len(nodes.union(run.nodes)) == 1


def at_node(explanation: Explanation, node: str | None) -> Explanation:
    """Return the explanation with its node, named in a directive to leave it out."""
    if node is None:
        return explanation
    return replace(
        explanation, culprit_node=node, next_action=explanation.next_action.replace(EXCLUDE, f"--exclude={node}")
    )


def culprit_node(store: Store, run: Run, explanation: Explanation) -> str | None:
    """Return the node of the culprit's rank, else of the links. Raises: MalformedError."""
    if explanation.cause is None:
        return None
    if explanation.culprit_rank is None:
        return node_of_links(store, run, explanation.cause)
    with store.catalog.read() as session:
        return next((rank.node for rank in session.ranks.of(run.run_id) if rank.rank == explanation.culprit_rank), None)


def node_of_links(store: Store, run: Run, cause: str) -> str | None:
    """Return the node with clearly the most evidence of the cause on its links.

    None where nodes are alike, and for causes without such evidence. Both ends of a link show a loss: one sends again,
    the other misses it. Raises: MalformedError.
    """
    nodes = list(dict.fromkeys(run.nodes))
    evidence = [sampled for sampled in LINK_EVIDENCE.get(cause, ()) if sampled.locates]
    if not evidence or len(nodes) < 2 or (spans := spans_of(store, [run])).empty:
        return None
    within = int(spans["begin_ns"].min()), int(spans["end_ns"].max()) + 1
    rows = [(number, node, *within) for number, node in enumerate(nodes)]
    places = pd.DataFrame(rows, columns=["moment", "at_node", "from_ns", "until_ns"])
    shares = _shares([*rates_during(store.lake, places, len(nodes), evidence).values()])
    order = np.argsort(shares)
    return nodes[order[-1]] if len(shares) and shares[order[-1]] > CLEAR_RATIO * shares[order[-2]] else None


def _shares(counted: Sequence[Floats]) -> Floats:
    """Return the mean share of each node in the columns that counted anything, shape (n_nodes,); else empty."""
    counts = [np.nan_to_num(column) for column in counted if np.nansum(column) > 0]
    return np.mean([column / column.sum() for column in counts], axis=0) if counts else np.empty(0)
