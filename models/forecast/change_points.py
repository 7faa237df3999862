"""Lasting changes of a series' level: while it arrives, and looking back at all of it.

Both work on logarithms, so that a level twice as high is the same change in any unit, and both cap the deviation of a
single value, so that one slow step is no change.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats

NORMAL_CONSISTENCY = 1.4826  # median absolute deviation -> standard deviation of a normal distribution
GRID_LEVELS = 64
CAP_DEVIATIONS = 3.0  # a value further off its level costs no more than this many deviations
LONGEST = 20_000  # values; longer series are looked at in blocks, and their changes placed exactly afterwards
SPREAD_MIN = 1e-3  # of logarithms: changes below a thousandth are none


@dataclass(frozen=True)
class Segment:
    """Values from `first` up to before `end` of one level, their median, in the unit of the series."""

    first: int
    end: int
    level: float


def segments(values: Floats, *, penalty: float | None = None, shortest: int = 3) -> list[Segment]:
    """The series cut where its level changed; (n,) positive values in order, one at least.

    `penalty` is what one change must save, in capped deviations; None means 4 + 2 ln n, at which noise alone seldom
    changes. Exact over a grid of levels in n x GRID_LEVELS steps: the cheapest path through the levels, where
    staying is free and changing costs the penalty. Raises: InvalidInputError.
    Source: the L1-Potts functional (Storath, Weinmann, Demaret 2014), its loss capped as in Fearnhead and Rigaill 2019.
    """
    logs = _logs(values)
    block = -(-len(logs) // LONGEST)
    coarse = _block_medians(logs, block)
    spread = _noise(coarse)
    path = _cheapest_path(coarse, spread, 4 + 2 * math.log(len(coarse)) if penalty is None else penalty)
    starts = [0, *(int(index) + 1 for index in np.flatnonzero(np.diff(path)))]
    placed = [_placed(logs, start * block, block) if block > 1 and start else start * block for start in starts]
    return [_segment(values, first, end) for first, end in _long_enough([*placed, len(logs)], shortest)]


def change_points(values: Floats, *, penalty: float | None = None, shortest: int = 3) -> list[int]:
    """The positions at which a new level began, none for a series of one level. Raises: InvalidInputError."""
    return [segment.first for segment in segments(values, penalty=penalty, shortest=shortest)[1:]]


@dataclass
class Regime:
    """The present level of a series, updated while it arrives, with a fixed handful of operations a value.

    Two cumulative sums, up and down, of how far each value's logarithm lies off the level, in deviations less `slack`;
    one above `threshold` is a change, and the new level is the mean since that sum was last 0.
    Source: Page 1954, "Continuous inspection schemes"; values are capped so that several must agree.
    """

    slack: float = 0.5
    threshold: float = 8.0
    count: int = 0  # values since the change
    level: float = 0.0  # mean logarithm since the change
    deviation: float = 0.0  # mean absolute deviation from one value to the next, of logarithms
    seen: int = 0
    changed_at: int = 0  # the value at which the present level began
    last: float = 0.0
    up: tuple[float, int, float] = (0.0, 0, 0.0)  # sum, and since it was 0 the number and the logarithms of values
    down: tuple[float, int, float] = (0.0, 0, 0.0)

    def observe(self, log_value: float) -> bool:
        """Return whether this value showed a change of level. Raises: InvalidInputError."""
        if not math.isfinite(log_value):
            raise InvalidInputError(f"value {self.seen} of the series has logarithm {log_value}, expected a finite one")
        if self.seen:
            step = abs(log_value - self.last)
            self.deviation += (min(step, 4 * self.deviation or step) - self.deviation) / min(self.seen, 50)
        self.seen, self.last = self.seen + 1, log_value
        off = self._off(log_value)
        capped = self.level + off * max(self.deviation, SPREAD_MIN) if self.count >= 2 else log_value
        slack = self.slack + 1 / math.sqrt(max(self.count, 1))  # a level known from few values is off by itself
        self.up, self.down = _summed(self.up, off - slack, log_value), _summed(self.down, -off - slack, log_value)
        changed = max(self.up, self.down)
        if changed[0] > self.threshold:
            self._begin(changed)
            return True
        self.count += 1
        self.level += (capped - self.level) / self.count
        return False

    def _off(self, log_value: float) -> float:
        if self.count < 2:
            return 0.0
        off = (log_value - self.level) / max(self.deviation, SPREAD_MIN)
        return min(max(off, -CAP_DEVIATIONS), CAP_DEVIATIONS)

    def _begin(self, changed: tuple[float, int, float]) -> None:
        _, self.count, total = changed
        self.level, self.changed_at = total / self.count, self.seen - self.count
        self.up = self.down = (0.0, 0, 0.0)


def _summed(sum_since: tuple[float, int, float], by: float, log_value: float) -> tuple[float, int, float]:
    total = sum_since[0] + by
    return (total, sum_since[1] + 1, sum_since[2] + log_value) if total > 0 else (0.0, 0, 0.0)


def _logs(values: Floats) -> Floats:
    if values.ndim != 1 or len(values) == 0 or not np.all(np.isfinite(values) & (values > 0)):
        raise InvalidInputError(f"series of shape {values.shape}: expected at least one value, all positive numbers")
    return np.log(values)


def _block_medians(logs: Floats, block: int) -> Floats:
    return np.array([np.median(logs[first : first + block]) for first in range(0, len(logs), block)])


def _noise(logs: Floats) -> float:
    """The usual deviation from a level, from the differences of neighbours, which a change of level hardly affects."""
    if len(logs) < 2:
        return SPREAD_MIN
    return max(NORMAL_CONSISTENCY * float(np.median(np.abs(np.diff(logs)))) / math.sqrt(2), SPREAD_MIN)


def _cheapest_path(logs: Floats, spread: float, penalty: float) -> Floats:
    levels = np.unique(np.quantile(logs, np.linspace(0, 1, GRID_LEVELS)))
    losses = np.minimum(np.abs(logs[:, None] - levels) / spread, CAP_DEVIATIONS)
    cost = losses[0]
    came_from = np.empty(losses.shape, dtype=np.int16)
    stay = np.arange(len(levels))
    for index in range(1, len(logs)):
        best = int(np.argmin(cost))
        change = cost[best] + penalty < cost
        came_from[index] = np.where(change, best, stay)
        cost = np.where(change, cost[best] + penalty, cost) + losses[index]
    path = np.empty(len(logs))
    at = int(np.argmin(cost))
    for index in range(len(logs) - 1, -1, -1):
        path[index] = levels[at]
        at = int(came_from[index, at]) if index else at
    return path


def _placed(logs: Floats, about: int, block: int) -> int:
    """The exact place of a change that lies within a block of `about`: where two medians fit best, by absolute loss."""
    first, end = max(about - 2 * block, 0), min(about + 2 * block, len(logs))
    before, after = np.median(logs[first : about - block + 1]), np.median(logs[about + block - 1 : end])
    saved = np.abs(logs[first:end] - after) - np.abs(logs[first:end] - before)
    return first + int(np.argmax(np.concatenate([[0.0], np.cumsum(saved)])))


def _long_enough(bounds: Sequence[int], shortest: int) -> list[tuple[int, int]]:
    """Segments between the bounds; one that is too short is joined to the one before."""
    joined: list[tuple[int, int]] = []
    for first, end in pairwise(bounds):
        if joined and end - first < shortest:
            joined[-1] = (joined[-1][0], end)
        elif joined and joined[0][1] - joined[0][0] < shortest and len(joined) == 1:
            joined[0] = (joined[0][0], end)
        else:
            joined.append((first, end))
    return joined


def _segment(values: Floats, first: int, end: int) -> Segment:
    return Segment(first, end, float(np.median(values[first:end])))
