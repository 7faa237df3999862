"""The lag of each rank behind its peers, summed up until it is no chance any more.

The rule is that of `crosswind stragglers` (Page 1954), in plain Python: what runs beside a job loads no numpy. A lag is
a rank's own time less the median of all ranks, in usual steps; a rank that lags is one for which the others wait.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from statistics import median

from crosswind.ingest.capture.steps import RankStep

LEARNED = 5  # first steps without a verdict: the noise is not known yet
SLACK, CAP, THRESHOLD = 0.7, 6.0, 15.0  # deviations
FULL = 2 * THRESHOLD  # of the sum, so that the end of a lag is noticed as soon as its beginning
NOTICED = 0.05  # of the usual step: smaller lags are not worth a trace
PAUSE = 3.0  # usual steps; a lag that long counts at once
NOISE_MIN = 0.01  # of the usual step
NOISIER = 2.0  # times the ranks' median noise, that a rank's own may be: a limit on its time makes its steps uneven
PACE_STEPS = 10  # first steps, whose pace the later ones are compared with
SLOWER = 0.1  # of that pace
FORGET = 0.05  # weight of a new step in the usual values


@dataclass
class Series:
    """One rank's lags, or the whole run's slowness; shares of a usual step."""

    steps: int = 0
    last: float | None = None
    noise: float = 0.0
    total: float = 0.0  # the sum of deviations, never below 0
    lost: float = 0.0  # since the sum was last 0
    length: int = 0

    def add(self, value: float, noise_max: float = inf) -> None:
        """Take the next step's, whose noise counts as so much at most."""
        self.steps += 1
        if self.last is not None:
            change = min(abs(value - self.last), 4 * self.noise or abs(value - self.last))
            self.noise += max(FORGET, 1 / self.steps) * (change - self.noise)
        self.last = value
        if self.steps > LEARNED:
            self._sum(value, max(min(self.noise, noise_max), NOISE_MIN))

    def _sum(self, value: float, noise: float) -> None:
        deviations = min(value / noise - SLACK, CAP)
        self.total = min(max(0.0, self.total + deviations), FULL)
        if self.total == 0.0:
            self.lost, self.length = 0.0, 0
        else:
            self.lost, self.length = self.lost + value, self.length + 1

    @property
    def mean(self) -> float:
        """Return the mean since the sum was last 0."""
        return self.lost / self.length if self.length else 0.0

    @property
    def is_noticed(self) -> bool:
        """Return whether this is no chance, and large enough to be worth a trace."""
        is_pause = self.steps > LEARNED and self.last is not None and self.last > PAUSE
        return self.mean >= NOTICED and (self.total > THRESHOLD or is_pause)


@dataclass
class Lags:
    """The lags of all ranks, and how much slower the run's steps are than its first ones."""

    usual: float = 0.0  # seconds of a step, lately
    pace: float = 0.0  # seconds of the first steps, or of the fastest ones since
    steps: int = 0
    level: float = 0.0  # seconds of a step, lately, since the pace was learnt
    paced: int = 0  # steps that the pace was learnt from
    ranks: dict[int, Series] = field(default_factory=dict)
    run: Series = field(default_factory=Series)

    def add(self, rows: Mapping[int, RankStep]) -> dict[int, float]:
        """Take a step of all ranks. Return their lags."""
        seconds = max(row.own + row.waited for row in rows.values())
        self.steps += 1
        weight = max(FORGET, 1 / self.steps)
        self.usual += weight * (min(seconds, 2 * self.usual or seconds) - self.usual)
        self._compare(seconds)
        middle = median(row.own for row in rows.values())
        lags = {rank: (row.own - middle) / max(self.usual, 1e-9) for rank, row in rows.items()}
        noise_max = NOISIER * median(series.noise for series in self.ranks.values()) if self.ranks else inf
        for rank, lag in lags.items():
            self.ranks.setdefault(rank, Series()).add(lag, noise_max)
        return lags

    def _compare(self, seconds: float) -> None:
        if self.paced < PACE_STEPS:
            self.paced += 1
            self.pace += (seconds - self.pace) / self.paced
            self.level = self.pace
        else:
            self.level += FORGET * (min(seconds, 2 * self.level) - self.level)
            self.pace = min(self.pace, self.level)
            self.run.add(seconds / max(self.pace, 1e-9) - 1)

    @property
    def is_slower(self) -> bool:
        """Return whether the run has become slower, which single ranks need not have."""
        return self.run.is_noticed and self.run.mean >= SLOWER

    def accept_pace(self) -> None:
        """Take the pace from now on for the usual one."""
        self.pace, self.paced, self.run = 0.0, 0, Series()
