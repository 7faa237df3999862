"""The time of a run if its ranks were equal: S = measured / replayed, of the whole and of each rank.

Two replays. Of a synchronous run, from each step's local times and waits: T = max local + fabric, in which a rank's
local time is replaced by the median of its peers. And of a pipeline, from the operations of its ranks: each begins when
the one before it on its rank and its dependencies have ended, and takes as long as measured or, replayed, the mean of
the same operation over all ranks.

Source: Lin et al., "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025, equations 1, 2
and 4: S of the whole, and of one rank or stage alone, everything else being equal.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.answers.stragglers import Slowdown
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.stragglers.peers import others_median


def synchronous_slowdown(local: Floats, fabric: Floats, groups: Sequence[int] | None = None) -> Slowdown:
    """Slowdown of a run whose ranks meet once a step: `local` (n_steps, n_ranks) and `fabric` (n_steps,) in seconds.

    Peers are the ranks of one group, all without groups; a rank without peers stays as it is. Raises:
    InvalidInputError.
    """
    _check(local, fabric, groups)
    codes = np.zeros(local.shape[1], np.int64) if groups is None else np.unique(groups, return_inverse=True)[1]
    equal, peers = _equal(local, codes)
    measured = float((local.max(axis=1) + fabric).sum())
    ideal = float((equal.max(axis=1) + fabric).sum())
    alone = (np.maximum(equal.max(axis=1, keepdims=True), local).sum(axis=0) + fabric.sum()) / ideal
    mended = np.maximum(_others_max(local), np.minimum(peers, local)).sum(axis=0) + fabric.sum()
    of_group = [
        float((np.maximum(equal, np.where(codes == group, local, 0.0)).max(axis=1) + fabric).sum()) / ideal
        for group in range(int(codes.max()) + 1)
    ]
    return Slowdown(measured / ideal, tuple(alone.tolist()), tuple((measured / mended).tolist()), tuple(of_group))


def _equal(local: Floats, codes: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Local times at their group's median, and at the median of the others in it, (n_steps, n_ranks) each."""
    equal, peers = local.copy(), local.copy()
    for group in range(int(codes.max()) + 1):
        members = codes == group
        if members.sum() > 1:
            equal[:, members] = np.median(local[:, members], axis=1, keepdims=True)
            peers[:, members] = others_median(local[:, members])
    return equal, peers


def _others_max(local: Floats) -> Floats:
    """The largest local time of the others, (n_steps, n_ranks); 0 for a single rank."""
    if local.shape[1] == 1:
        return np.zeros_like(local)
    second, first = np.moveaxis(np.partition(local, -2, axis=1)[:, -2:, None], 1, 0)
    is_first = np.arange(local.shape[1]) == np.argmax(local, axis=1)[:, None]
    return np.asarray(np.where(is_first, second, first))


def _check(local: Floats, fabric: Floats, groups: Sequence[int] | None) -> None:
    if local.ndim != 2 or not local.size or fabric.shape != local.shape[:1]:
        raise InvalidInputError(f"local times of shape {local.shape}: expected (n_steps, n_ranks) and a fabric a step")
    if groups is not None and len(groups) != local.shape[1]:
        raise InvalidInputError(f"{len(groups)} groups: expected one for each of {local.shape[1]} ranks")
    if not (np.isfinite(local).all() and np.isfinite(fabric).all() and (local >= 0).all() and (fabric >= 0).all()):
        raise InvalidInputError("local times and fabric: expected finite seconds, 0 or more")
