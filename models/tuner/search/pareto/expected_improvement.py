"""The expected growth of the volume that the Pareto front dominates, by candidate."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.tuner.study.front import on_front

BLOCK = 2048  # candidates at once, so that intermediate results stay in the cache


def expected_hypervolume_improvement(means: Floats, deviations: Floats, front: Floats, behind: Floats) -> Floats:
    """Return the expected growth of the dominated volume, (n,), for normal, independent objectives; lower is better.

    `means` and `deviations` are (n, n_objectives), `front` (n_front, n_objectives), possibly empty, `behind` the
    reference point. Exact for any number of objectives: the undominated volume is cut into boxes, and over a box the
    expectation is a product of one factor an objective. The cost grows as n_front ** (n_objectives - 1); with one
    objective this is expected improvement. Raises: InvalidInputError for shapes that do not fit.
    Source: Emmerich, Deutz and Klinkenberg 2011; Yang, Emmerich, Deutz and Baeck 2019.
    """
    if means.shape != deviations.shape or front.shape[1:] != means.shape[1:] or behind.shape != means.shape[1:]:
        raise InvalidInputError(
            f"means {means.shape}, deviations {deviations.shape}, front {front.shape} and reference {behind.shape} "
            "differ, expected one number an objective in each"
        )
    inside = np.minimum(front, behind)
    inside = inside[on_front(inside)] if len(inside) else inside
    ends = np.vstack([inside, behind])  # the reference is the last row
    blocks = [slice(start, start + BLOCK) for start in range(0, len(means), BLOCK)]
    tables = (
        [_shortfall(*columns) for columns in zip(means[b].T, deviations[b].T, ends.T, strict=True)] for b in blocks
    )
    improvements = [_improvement(table, ends, np.arange(len(inside))) for table in tables] if blocks else [np.zeros(0)]
    return np.concatenate(improvements)


def _improvement(shortfalls: list[Floats], ends: Floats, rows: NDArray[np.intp]) -> Floats:
    """Sum slabs along the last objective: the rows that begin before a slab are a front of one objective less."""
    last = len(shortfalls) - 1
    rows = rows[on_front(ends[rows, : last + 1])] if len(rows) else rows
    rows = rows[np.argsort(ends[rows, last], kind="stable")]
    if last == 0:
        return np.asarray(shortfalls[0][[*rows, -1][0]], np.float64)
    if last == 1:
        # Between neighbours, the second objective may be anything before that of the next.
        rows = rows[::-1]
        widths = np.diff(shortfalls[0][[*rows, -1]], axis=0, prepend=0.0)
        return np.asarray(np.einsum("ij,ij->j", widths, shortfalls[1][[-1, *rows]]), np.float64)
    depths = np.diff(shortfalls[last][[*rows, -1]], axis=0, prepend=0.0)
    total = np.zeros(depths.shape[1])
    for count, depth in enumerate(depths):
        total += depth * _improvement(shortfalls[:last], ends, rows[:count])
    return total


def _shortfall(mean: Floats, deviation: Floats, ends: Floats) -> Floats:
    """Return the mean distance of a normal number below each end, above counting as 0: (n_ends, n)."""
    deviation = np.maximum(deviation, 1e-12)
    gap = ends[:, None] - mean
    scaled = gap / deviation
    shortfall = np.square(scaled)
    shortfall *= -0.5
    np.exp(shortfall, out=shortfall)
    shortfall *= deviation / np.sqrt(2 * np.pi)
    shortfall += gap * ndtr(scaled)
    return np.asarray(shortfall, np.float64)
