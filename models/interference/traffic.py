"""Traffic of neighbours on other nodes during their stay, where their nodes were sampled."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from crosswind.data.lake.lake import Lake
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run, RunState
from crosswind.models.association.outcomes import Outcomes
from crosswind.models.counters.rates import BYTES, counters_during

PRESENCES_MAX = 20_000  # whose nodes' samples are read; of more, all count alike
LOOPBACK = "lo"


def relative_traffic(lake: Lake, compared: Outcomes, present: pd.DataFrame, groups: Mapping[str, str]) -> Floats | None:
    """Bytes a second on the node of each of n presences, over the median of the known ones, (n,).

    1 where less than half of its time was sampled, None where that is so of all. A node's bytes are those of all on it.
    Raises: MalformedError for a damaged file.
    """
    if not groups or not len(present) or len(present) > PRESENCES_MAX:
        return None
    last_ns = max(run.ended_ns or 0 for run in compared.runs)
    stays = [
        Run(str(number), "", "", RunState.COMPLETED, nodes=(node,), started_ns=begin, ended_ns=min(end, last_ns))
        for number, (node, begin, end) in enumerate(
            present[["node", "begin_ns", "end_ns"]].itertuples(index=False, name=None)
        )
    ]
    rates_of = counters_during(lake, stays, only=BYTES)
    moved = [values for counter, values in rates_of.items() if counter.per == "second" and counter.devices != LOOPBACK]
    if not moved:
        return None
    rates = pd.concat(moved, axis=1).sum(axis=1, min_count=1).to_numpy(np.float64)
    usual = np.nanmedian(rates) if np.isfinite(rates).any() else 0.0
    return np.where(np.isnan(rates), 1.0, rates / usual) if usual > 0 else None
