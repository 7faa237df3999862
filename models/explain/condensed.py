"""Segments of a run as one of a cohort, of whom only means are asked: a row for each rank that came last.

What a run's nodes and clocks cost it is told when it stands beside other runs, in proportion to the compute of the
rank that came last: hence a row for each of them, and not one for all.
"""

import numpy as np

from crosswind.models.explain.segments import Segments


def condensed(run: Segments) -> Segments:
    """The same run in few rows, one a rank that came last; their mean is the mean of its segments. `peers` is empty."""
    order = np.argsort(run.culprits, kind="stable")
    ranks, first = np.unique(run.culprits[order], return_index=True)
    values = np.add.reduceat(run.values[order], first, axis=0) * (len(ranks) / len(run.values))
    return Segments(
        run.run_id,
        run.ranks,
        values,
        ranks,
        np.empty((0, values.shape[1])),
        run.work,
        run.of_ranks.copy(),
        run.clocks,
        run.count,
    )
