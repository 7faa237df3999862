"""The certainty of the cause that is named first: how often it is the largest when all evidence is drawn again."""

import numpy as np

from crosswind.data.schema.answers.explanations import UNKNOWN
from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes import BY_NAME
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.significance import ComparedShares, Finding
from crosswind.models.explain.split import REPLICATES, UNEXPLAINED, Split, expected_again, resampled, split


def certainty(run: Segments, first: Finding, compared: ComparedShares, ranks: ComparedShares | None) -> float:
    """Return the share of replicates in which it is the largest, in its rank or in the run; both sides are redrawn.

    The runs of the cohort are drawn again, and so are the run's own steps.
    """
    if first.rank is None or ranks is None:
        return share_first(first.cause, _again(run.means, run.values, compared))
    differences = run.differences(run.numbers[first.rank])
    return share_first(first.cause, _again(ranks.means[first.rank], differences, ranks))


def share_first(cause: str, parts: Split) -> float:
    """Return the share of replicates in which the cause is the largest; never 1, as one more might have another."""
    own = UNEXPLAINED if cause == UNKNOWN else cause
    others = [values for name, values in parts.replicates.items() if name in {*BY_NAME, UNEXPLAINED} - {own}]
    return float(np.sum(parts.replicates[own] > np.max(others, axis=0))) / (REPLICATES + 1)


def _again(means: Floats, segments: Floats, compared: ComparedShares) -> Split:
    drawn = means + resampled(segments, np.random.default_rng(3)) - segments.mean(axis=0)
    return split(means, compared.reference, again=drawn - expected_again(compared.reference))
