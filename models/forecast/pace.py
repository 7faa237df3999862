"""The pace of a run so far, in a handful of numbers that each step brings up to date."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from crosswind.data.schema.prediction import Floats

MEMORY_SHARE = 0.1  # of a run's steps that count as recent
MEMORY_STEPS_MIN = 3


def memory_of(total_steps: int) -> float:
    """Over how many steps the recent level of a run looks back."""
    return max(MEMORY_STEPS_MIN, MEMORY_SHARE * total_steps)


@dataclass
class Pace:
    """Running sums of the logarithms of step seconds to what a calm run takes; `memory` in steps."""

    memory: float
    count: int = 0
    seconds: float = 0.0
    logs: float = 0.0
    recent_logs: float = 0.0  # weighted by age, as is the weight
    recent_weight: float = 0.0
    deviations: float = 0.0  # sum of absolute differences from the step before
    last: float = 0.0
    signals: dict[str, float] = field(default_factory=dict)  # sums

    def observe(self, seconds: float, usual_seconds: float, signals: Mapping[str, float]) -> float:
        """The step's log ratio to the usual one; the sums hold it from now on."""
        ratio = math.log(seconds / usual_seconds)
        kept = 1 - 1 / self.memory
        self.recent_logs = kept * self.recent_logs + ratio
        self.recent_weight = kept * self.recent_weight + 1
        self.deviations += abs(ratio - self.last) if self.count else 0.0
        self.count, self.seconds, self.logs, self.last = (
            self.count + 1,
            self.seconds + seconds,
            self.logs + ratio,
            ratio,
        )
        for name, value in signals.items():
            self.signals[name] = self.signals.get(name, 0.0) + value
        return ratio

    @property
    def level(self) -> float:
        """Mean log ratio of all steps so far."""
        return self.logs / max(self.count, 1)

    @property
    def mean_seconds(self) -> float:
        """Mean seconds of all steps so far."""
        return self.seconds / max(self.count, 1)

    @property
    def recent(self) -> float:
        """Mean log ratio of the last steps."""
        return self.recent_logs / max(self.recent_weight, 1e-12)

    @property
    def roughness(self) -> float:
        """Mean absolute difference of neighbouring steps' log ratios."""
        return self.deviations / max(self.count - 1, 1)


def paces(seconds: Floats, shape: Floats, counts: NDArray[np.int64]) -> Floats:
    """Level, recent level and roughness of a past run after `counts` steps, as in `Pace`; shape (n_counts, 3).

    `counts`: rising numbers of steps, 1 at least. Ratios are to `shape` alone, so they include the level of a calm run.
    """
    logs = np.log(seconds / shape)
    level = np.cumsum(logs)[counts - 1] / counts
    jumps = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(logs)))])
    roughness = jumps[counts - 1] / np.maximum(counts - 1, 1)
    kept = 1 - 1 / memory_of(len(seconds))
    return np.column_stack([level, _recent(logs, kept)[counts - 1], roughness])


def _recent(logs: Floats, kept: float) -> Floats:
    weighted = lfilter([1.0], [1.0, -kept], np.column_stack([logs, np.ones_like(logs)]), axis=0)
    recent: Floats = weighted[:, 0] / weighted[:, 1]
    return recent
