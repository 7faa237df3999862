"""Turns of the arms: the sources' as long as the sources rank the target well, then the target's own."""

import math

from crosswind.data.schema.prediction import Floats
from crosswind.models.tuner.search.portfolio.arms import (
    TRUST_MIN,
    Arm,
    BestRows,
    Densities,
    JointTrees,
    RankedEnsemble,
    TargetProcess,
    TargetTrees,
    WeightedSources,
)

# The sources' best rows and the process of all their rows, in turn; then the joint trees.
START: tuple[Arm, ...] = (BestRows(), WeightedSources(), BestRows(), WeightedSources(), BestRows(), JointTrees())
SOURCED: tuple[Arm, ...] = (
    *(WeightedSources(), JointTrees(), WeightedSources()),
    *(BestRows(), WeightedSources(), RankedEnsemble()),
)
OWN: tuple[Arm, ...] = (TargetProcess(), TargetTrees(), TargetProcess(), TargetProcess(), Densities())
PATIENCE = 8  # trials after which the sources weigh half
GOLDEN = (math.sqrt(5) - 1) / 2
DOUBTED_FROM = 6  # trials, before which a distrusted source still gets its turns


def turn(shares: Floats, place: int) -> tuple[Arm, ...]:
    """Return the arms in the order in which they may choose; `shares` are the sources' and, last, the target's own.

    `place` counts the trials. Places are spread over the two kinds of arm in proportion, without chance: by multiples
    of the golden ratio.
    """
    trust = 1 - float(shares[-1])
    if len(shares) == 1:
        return _rotated(OWN, place)
    if place < len(START):
        return _rotated(START, place)
    if trust < TRUST_MIN and place >= DOUBTED_FROM:
        return _rotated(OWN, place)
    part = (PATIENCE + place * trust) / (PATIENCE + place) * PATIENCE / (PATIENCE + place * (1 - trust))
    first, then = (SOURCED, OWN) if (place * GOLDEN) % 1 < part else (OWN, SOURCED)
    return (*_rotated(first, math.floor(place * GOLDEN)), *then)


def _rotated(arms: tuple[Arm, ...], by: int) -> tuple[Arm, ...]:
    return (*arms[by % len(arms) :], *arms[: by % len(arms)])
