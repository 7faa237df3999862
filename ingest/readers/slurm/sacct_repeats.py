"""Repeated job ids in an export, noticed in bounded memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]
REMEMBERED = 100_000  # job ids at least, to notice duplicates; twice as many at most, some 20 MB
NEVER = 1 << 62  # higher than any job id
POWERS = 10 ** np.arange(19, dtype=np.int64)


@dataclass
class Remembered:
    """Job ids that came before, without the oldest ones.

    Ids of most exports only rise, and then the highest one decides: the others are kept as numbers in `rising`.
    """

    young: set[str] = field(default_factory=set)
    old: set[str] = field(default_factory=set)
    rising: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    highest: int = -1

    def repeats_among(self, job_ids: pa.ChunkedArray) -> int:
        """Return how many of the ids came before; at least the last REMEMBERED ids are known."""
        numbers = _numbers(job_ids)
        if numbers is not None and numbers[0] >= self.highest and (numbers[1:] >= numbers[:-1]).all():
            fresh = numbers[np.diff(numbers, prepend=self.highest) > 0]
            self.highest = int(numbers[-1])
            self._wait(fresh)
            return len(numbers) - len(fresh)
        self.highest = NEVER if numbers is None else max(self.highest, int(numbers.max()))
        return self.repeats(job_ids.to_pylist())

    def repeats(self, job_ids: Sequence[str]) -> int:
        """Return how many of the ids came before, also among themselves, however many they are."""
        waiting, self.rising = self.rising, self.rising[:0]
        if len(waiting):
            self.repeats(waiting.astype(str).tolist())
        count, place = 0, 0
        while place < len(job_ids):
            some = job_ids[place : place + REMEMBERED - len(self.young)]
            different = set(some)
            earlier = (
                sum(job_id in self.young or job_id in self.old for job_id in different) if self._knows(different) else 0
            )
            count += len(some) - len(different) + earlier
            self.young |= different
            place += len(some)
            if len(self.young) == REMEMBERED:
                self.old, self.young = self.young, set()
        return count

    def _knows(self, job_ids: set[str]) -> bool:
        return not (self.young.isdisjoint(job_ids) and self.old.isdisjoint(job_ids))

    def _wait(self, fresh: Numbers) -> None:
        """Note different ids without looking them up; drop those that the sets would have dropped by now."""
        self.rising = np.concatenate([self.rising, fresh])
        while len(self.rising) >= (forgotten := REMEMBERED - len(self.young)) + REMEMBERED:
            self.rising = self.rising[forgotten:]
            self.young, self.old = set(), set()


def _numbers(job_ids: pa.ChunkedArray) -> Numbers | None:
    """Return the ids as numbers; None if one is another text than its number."""
    try:
        numbers = job_ids.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    lengths = pc.binary_length(job_ids).to_numpy()
    return numbers if (numbers >= POWERS[lengths - 1]).all() else None
