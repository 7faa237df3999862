"""Division of a batch among ranks of unequal speed."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.checks import require_count, require_not_negative, require_positive


@dataclass(frozen=True)
class Pace:
    """The time of a rank for a step: `fixed_seconds`, and more for each sample; no samples take no time."""

    seconds_a_sample: float
    fixed_seconds: float = 0.0

    def __post_init__(self) -> None:
        require_positive(seconds_a_sample=self.seconds_a_sample)
        require_not_negative(fixed_seconds=self.fixed_seconds)

    def seconds(self, samples: int) -> float:
        """Seconds for a number of samples."""
        return self.fixed_seconds + samples * self.seconds_a_sample if samples else 0.0


def batch_shares(paces: Sequence[Pace], batch: int, *, allow_none: bool = False) -> list[int]:
    """Return whole samples a rank that sum to the batch and make the slowest rank as fast as possible.

    Every rank gets one at least, unless `allow_none`. The optimum: all ranks take the samples they finish within a
    time, the shortest that suffices for the batch; the excess is then taken from the ranks that would end last. Raises:
    InvalidInputError.
    """
    require_count(batch=batch, ranks=len(paces))
    least = 0 if allow_none else 1
    if batch < least * len(paces):
        raise InvalidInputError(f"batch is {batch} for {len(paces)} ranks, expected at least one sample each")
    shares = _within(paces, _enough(paces, batch, least), least)
    return _reduced(paces, shares, batch, least)


def slowest_seconds(paces: Sequence[Pace], shares: Sequence[int]) -> float:
    """Return the seconds of the slowest rank."""
    return max(pace.seconds(share) for pace, share in zip(paces, shares, strict=True))


def _enough(paces: Sequence[Pace], batch: int, least: int) -> float:
    """A time within which the ranks finish the batch, at most one part in 2^50 too long."""
    low, high = 0.0, min(pace.seconds(batch) for pace in paces)
    for _ in range(50):
        middle = (low + high) / 2
        if sum(_within(paces, middle, least)) >= batch:
            high = middle
        else:
            low = middle
    return high


def _within(paces: Sequence[Pace], seconds: float, least: int) -> list[int]:
    # The small number keeps 3 x 0.1 seconds within 0.3.
    fitting = [int(np.floor((seconds - pace.fixed_seconds) / pace.seconds_a_sample + 1e-9)) for pace in paces]
    return [max(share, least) for share in fitting]


def _reduced(paces: Sequence[Pace], shares: list[int], batch: int, least: int) -> list[int]:
    ends = [(-pace.seconds(share), rank) for rank, (pace, share) in enumerate(zip(paces, shares, strict=True))]
    heapq.heapify(ends)
    excess = sum(shares) - batch
    while excess > 0:
        _, rank = heapq.heappop(ends)
        if shares[rank] > least:
            shares[rank] -= 1
            excess -= 1
            heapq.heappush(ends, (-paces[rank].seconds(shares[rank]), rank))
    return shares
