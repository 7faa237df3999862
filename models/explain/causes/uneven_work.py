"""Uneven work: one rank after another comes last with more to compute than the others."""

from collections.abc import Mapping

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, at_most
from crosswind.models.explain.evidence.indicators import InSegments, SegmentTimes

SECONDS_LEAST = 0.001  # a step


def uneven_seconds(times: SegmentTimes) -> Floats:
    """Return by how much the last rank's work exceeds that of the rank with most work over the whole run.

    Seconds, shape (n_segments,). The mean is the cost of work that falls on one rank after another: 0 for one rank that
    is always slower.
    """
    work = times.work
    if work.shape[1] == 1:
        return np.zeros(len(work))
    return np.asarray(np.take_along_axis(work, times.culprit[:, None], axis=1)[:, 0] - work.mean(axis=0).max())


class UnevenWork:
    """Claims mean over steps of the largest work - largest over ranks of the mean work, where that grew.

    Source: Lin et al., "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025, for
    sequences of uneven lengths as a cause.
    """

    name = "uneven_work"
    next_action = (
        "Give ranks batches of equal cost: sort or pack sequences by length (a length-grouped sampler), balance "
        "tokens, not samples."
    )
    columns = ("uneven",)
    indicators = (InSegments("uneven", uneven_seconds),)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute, beyond what the rank with most work does over the whole run."""
        is_uneven = excess.is_beyond_usual("uneven", least=SECONDS_LEAST)
        return {"compute": np.where(is_uneven, at_most(excess["uneven"], excess.work), 0.0)}

    def evidence(self, observed: Observed) -> str:
        """Return the cost of work that falls on one rank after another."""
        measured, expected = observed.milliseconds("uneven")
        lost = f"work that falls on one rank after another costs {measured} a step"
        return f"{lost}, expected {expected}"
