"""The usual value of a measure, and the distance of another value from it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from crosswind.data.schema.checks import QUANTITIES

Z_SLOW = 4.0
# The least spreads, as ratios: even where a few values are alike, the next one may differ by as much. With Z_SLOW they
# set the least loss of a slow node against five others: 19 % of gemm, 83 % of a disk's rate, 51 % of bandwidth; against
# fifty: 12 %, 66 %, 35 %.
LEAST_SPREAD: Mapping[str, float] = {
    "gemm": 0.03,
    "memory": 0.05,
    "disk_write": 0.25,
    "disk_read": 0.25,
    "loop": 0.03,
    "noise": 0.05,
    "latency": 0.20,
    "bandwidth": 0.10,
}
NORMAL = 1.4826  # standard deviations in a median absolute deviation
DOUBT = 4.0  # the spread of few values is often too narrow: that of five is widened 1.8 times, of fifty 1.08 times
FEW = {2: 1.196, 3: 1.495, 4: 1.363, 5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}


@dataclass(frozen=True)
class Usual:
    """The usual value, and the spread of its logarithm."""

    value: float
    spread: float

    def z(self, measure: str, value: float) -> float:
        """Spreads by which a value is better (above 0) or worse than usual."""
        distance = (math.log(value) - math.log(self.value)) / self.spread
        return distance if QUANTITIES[measure].is_more_better else -distance


def usual(measure: str, values: Sequence[float]) -> Usual:
    """Median, and median absolute deviation of the logarithms, widened for few values; values above 0.

    Source: Croux and Rousseeuw 1992, "Time-efficient algorithms for two highly robust estimators of scale" (FEW).
    """
    logs = [math.log(value) for value in values]
    centre, n = median(logs), len(logs)
    deviation = NORMAL * median(abs(log - centre) for log in logs)
    spread = deviation * (FEW.get(n) or n / max(n - 0.8, 0.2))
    return Usual(math.exp(centre), max(spread, LEAST_SPREAD[measure]) * (1 + DOUBT / n))
