"""Ranking of nodes by the times of the runs on them, where ranks did not record how long they waited.

A synchronous run is as slow as its slowest node, so a run's log time is its cohort's usual one plus the effects of all
of its nodes. One slow run does not show which node slowed it; many runs on different sets of nodes do.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import sparse

from crosswind.data.schema.answers.stragglers import ComparisonBasis, PeerKind, RankedPeer
from crosswind.data.schema.run import Run, RunState
from crosswind.models.stragglers.by_ranks import NODE, ranked_effects
from crosswind.models.stragglers.effects import Factor, crossed_effects


def ranked_by_times(runs: Sequence[tuple[Run, str, Sequence[str]]]) -> tuple[list[RankedPeer], int]:
    """Rank nodes, and return the number of completed runs used: those of known nodes whose cohort has other runs.

    runs: each with its cohort and its nodes.
    """
    timed = [one for one in runs if one[0].state is RunState.COMPLETED and one[2] and (one[0].seconds or 0) > 0]
    sizes = Counter(cohort for _, cohort, _ in timed)
    kept = [one for one in timed if sizes[one[1]] > 1]
    if not kept:
        return [], 0
    logs = np.log([run.seconds or np.nan for run, _, _ in kept])
    groups = pd.factorize(np.array([cohort for _, cohort, _ in kept], dtype=object))[0].astype(np.int64)
    pairs = [(row, run.system, node) for row, (run, _, nodes) in enumerate(kept) for node in sorted(set(nodes))]
    table = pd.DataFrame(pairs, columns=["row", "system", "name"])
    codes = np.asarray(table.groupby(["system", "name"]).ngroup(), np.int64)
    names = table.assign(code=codes).drop_duplicates("code").sort_values("code")
    ones = sparse.csr_matrix((np.ones(len(codes)), (table["row"], codes)), shape=(len(kept), len(names)))
    effects = crossed_effects(logs, groups, [Factor(NODE, ones)])
    counts = np.bincount(codes)
    ranked = ranked_effects(
        (PeerKind.NODE, ComparisonBasis.RUN_TIMES), effects, names, rows=np.arange(len(names)), runs=counts
    )
    return list(ranked.values()), len(kept)
