"""Ranking of nodes by the times of the runs on them, where ranks did not record how long they waited.

A synchronous run is as slow as its slowest node, so a run's log time is its cohort's usual one plus the effects of all
of its nodes. One slow run does not show which node slowed it; many runs on different sets of nodes do.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import sparse

from crosswind.data.schema.answers.stragglers import ComparisonBasis, PeerKind, RankedPeer
from crosswind.data.schema.run import Run, RunState, cohort_key
from crosswind.models.stragglers.by_ranks import NODE, ranked_effects
from crosswind.models.stragglers.effects import Factor, crossed_effects


def ranked_by_times(runs: Sequence[Run]) -> tuple[list[RankedPeer], int]:
    """Rank nodes, and return the number of completed runs used: those of known nodes whose cohort has other runs."""
    timed = [run for run in runs if run.state is RunState.COMPLETED and run.nodes and (run.seconds or 0) > 0]
    cohorts = pd.Series([cohort_key(run) for run in timed], dtype=object)
    is_one_of_many = cohorts.groupby(cohorts).transform("size").gt(1).tolist() if timed else []
    kept = [run for run, many in zip(timed, is_one_of_many, strict=True) if many]
    if not kept:
        return [], 0
    logs = np.log([run.seconds or np.nan for run in kept])
    groups = pd.factorize(np.array([cohort_key(run) for run in kept], dtype=object))[0].astype(np.int64)
    pairs = [(row, run.system, node) for row, run in enumerate(kept) for node in sorted(set(run.nodes))]
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
