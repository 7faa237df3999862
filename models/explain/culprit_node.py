"""The node to look at: that of the culprit, or the one on whose links most of the cause shows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from crosswind.data.schema.answers.explanations import Explanation
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run
from crosswind.data.store.store import Store
from crosswind.models.explain.evidence import spans_of
from crosswind.models.explain.rates import RATES
from crosswind.models.explain.rates_during import rates_during

# By cause, what its links count. Of what is lost both ends tell: the one that sends again, and the one that misses it.
COUNTS: Mapping[str, tuple[str, ...]] = {
    "link_rate": ("overlimits",),
    "packet_loss": ("out_of_order", "retransmits"),
    "retransmission": ("retransmits", "retries"),
    "congestion": ("pauses", "port_waits", "marks", "backlog"),
    "neighbour_traffic": ("link_busy",),
}
STANDS_OUT = 1.5  # times the next node's share
EXCLUDE = "--exclude=NODE"


def at_node(explanation: Explanation, node: str | None) -> Explanation:
    """The same with its node, which its directive names where it asks to leave it out."""
    if node is None:
        return explanation
    return replace(
        explanation, culprit_node=node, next_action=explanation.next_action.replace(EXCLUDE, f"--exclude={node}")
    )


def culprit_node(store: Store, run: Run, explanation: Explanation) -> str | None:
    """The node of the culprit's rank, else of the links. Raises: MalformedError."""
    if explanation.cause is None:
        return None
    if explanation.culprit_rank is None:
        return node_of_links(store, run, explanation.cause)
    with store.catalog.read() as session:
        return next(
            (rank.node for rank in session.runs.ranks(run.run_id) if rank.rank == explanation.culprit_rank), None
        )


def node_of_links(store: Store, run: Run, cause: str) -> str | None:
    """The node with clearly the most of what speaks for the cause; None for other causes, and where nodes are alike.

    Raises: MalformedError.
    """
    nodes = list(dict.fromkeys(run.nodes))
    spans = spans_of(store, [run])
    if cause not in COUNTS or len(nodes) < 2 or spans.empty:
        return None
    within = int(spans["begin_ns"].min()), int(spans["end_ns"].max()) + 1
    rows = [(number, node, *within) for number, node in enumerate(nodes)]
    places = pd.DataFrame(rows, columns=["moment", "at_node", "from_ns", "until_ns"])
    rates = [rate for rate in RATES if rate.column in COUNTS[cause]]
    shares = _shares([*rates_during(store.lake, places, len(nodes), rates).values()])
    order = np.argsort(shares)
    return nodes[order[-1]] if len(shares) and shares[order[-1]] > STANDS_OUT * shares[order[-2]] else None


def _shares(counted: Sequence[Floats]) -> Floats:
    """Of each node the mean share of what was counted at all, shape (n_nodes,); empty where nothing was."""
    seen = [np.nan_to_num(counts) for counts in counted if np.nansum(counts) > 0]
    return np.mean([counts / counts.sum() for counts in seen], axis=0) if seen else np.empty(0)
