"""Turns of the arms: the sources' as long as the sources rank the target well, then the target's own."""

import math

from crosswind.data.schema.prediction import Floats
from crosswind.models.tuner.search.portfolio.arms import (
    TRUST_MIN,
    Agreed,
    Arm,
    BestRows,
    Densities,
    Designed,
    JointTrees,
    RankedEnsemble,
    TargetProcess,
    TargetTrees,
    WeightedSources,
)

# All sources' choice, the best rows and the process of all rows in turn, the joint trees; and one of the search's own
# design, which sources that say nothing of this target cannot foresee.
START: tuple[Arm, ...] = (Agreed(), BestRows(), WeightedSources(), Designed(), BestRows(), JointTrees())
SOURCED: tuple[Arm, ...] = (
    *(WeightedSources(), JointTrees(), WeightedSources()),
    *(BestRows(), WeightedSources(), RankedEnsemble()),
)
UNTRUSTED: tuple[Arm, ...] = (WeightedSources(),)  # with weights around 0: what the sources are worth is measured
OWN: tuple[Arm, ...] = (TargetProcess(), TargetTrees(), TargetProcess(), TargetProcess(), Densities())
PATIENCE = 8  # trials after which the sources weigh half
GOLDEN = (math.sqrt(5) - 1) / 2


def turn(shares: Floats, place: int) -> tuple[Arm, ...]:
    """Return the arms in the order in which they may choose; `shares` are the sources' and, last, the target's own.

    `place` counts the trials. Places are spread over the two kinds of arm in proportion, without chance: by multiples
    of the golden ratio.
    """
    trust = 1 - float(shares[-1])
    if len(shares) == 1:
        return _rotated(OWN, place)
    is_trusted = trust >= TRUST_MIN
    if is_trusted and place < len(START):
        return _rotated(START, place)
    sourced = SOURCED if is_trusted else UNTRUSTED
    first, then = (sourced, OWN) if (place * GOLDEN) % 1 < _part(trust, place) else (OWN, sourced)
    return (*_rotated(first, math.floor(place * GOLDEN)), *then)


def _part(trust: float, place: int) -> float:
    """Return the share of turns around a place that belongs to the sources' arms."""
    if trust < TRUST_MIN:
        return PATIENCE / (PATIENCE + place)
    return (PATIENCE + place * trust) / (PATIENCE + place) * PATIENCE / (PATIENCE + place * (1 - trust))


def _rotated(arms: tuple[Arm, ...], by: int) -> tuple[Arm, ...]:
    return (*arms[by % len(arms) :], *arms[: by % len(arms)])
