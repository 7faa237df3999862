"""The certainty of the cause that is named first: how often it is the largest when all evidence is drawn again."""

from collections import Counter

import numpy as np

from crosswind.data.schema.answers.explanations import UNKNOWN
from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes import BY_NAME
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.significance import ComparedShares
from crosswind.models.explain.split import REPLICATES, UNEXPLAINED, Split, expected_again, resampled, split

# Of the replicates, that have to name a cause first before anybody is told so. Chosen on the half of the lab's runs
# that is tagged `train`: a larger share loses as many right causes as wrong ones.
LEAST = 0.2


def redrawn(run: Segments, rank: int | None, compared: ComparedShares, ranks: ComparedShares | None) -> Split:
    """Return the split of the run, or of one row of its ranks, of which replicates draw both sides again.

    The runs of the cohort are drawn again, and so are the run's own steps.
    """
    if rank is None or ranks is None:
        return _again(run.means, run.values, compared)
    return _again(ranks.means[rank], run.differences(run.numbers[rank]), ranks)


def certainty(cause: str, parts: Split) -> float | None:
    """Return the share of replicates in which the cause is the largest; never 1, as one more might have another.

    None where that is too small a share to speak of certainty.
    """
    share = _times_first(parts)[cause] / (REPLICATES + 1)
    return share if share >= LEAST else None


def settled(cause: str, parts: Split) -> str:
    """Return the cause where replicates have it first, at least as many as leave most unexplained; else UNKNOWN."""
    first = _times_first(parts)
    return cause if certainty(cause, parts) is not None and first[cause] >= first[UNKNOWN] else UNKNOWN


def contenders(cause: str, parts: Split) -> tuple[str, ...]:
    """Return the causes of which the first may be one: this one, and the one that most replicates have first.

    None where these leave most unexplained, and the data do so, too.
    """
    most = max(_times_first(parts).items(), key=lambda item: item[1], default=(cause, 0))[0]
    if most == UNKNOWN:
        return () if parts.shares[UNEXPLAINED] > 0 else (cause,)
    return tuple(dict.fromkeys((cause, most)))


def _times_first(parts: Split) -> Counter[str]:
    """Return in how many replicates each cause, or UNKNOWN, is larger than all others."""
    names = [*BY_NAME, UNKNOWN]
    shares = np.array([parts.replicates[name] for name in (*BY_NAME, UNEXPLAINED)])
    second, largest = np.partition(shares, -2, axis=0)[-2:]
    return Counter(names[place] for place in np.argmax(shares, axis=0)[largest > second])


def _again(means: Floats, segments: Floats, compared: ComparedShares) -> Split:
    drawn = means + resampled(segments, np.random.default_rng(3)) - segments.mean(axis=0)
    return split(means, compared.reference, again=drawn - expected_again(compared.reference))
