"""Detects the rank that others wait for, while the run is in progress, from the rows of its steps as they arrive.

A rank's lag in a step is its time without waiting, less the median of its peers: the ranks of its group, such as a
pipeline's stage. Lags are summed up per rank, in deviations of that rank's own step-to-step noise less a slack, and
never below 0 (Page 1954); a sum above THRESHOLD is a straggler since the sum was last 0. A single step counts for CAP
at most, unless it alone loses as much time as PAUSE steps take. The wait that all ranks share, the least of any rank,
is the fabric's; it is compared with its own past, for it has no peers. The usual lag of a rank, whose place in the
program may have more to do, can be given, and is no lag.

Everything is an array over the ranks, so that a step of a thousand ranks costs some tenths of a millisecond.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.stragglers.peers import lags

PHASES = ("input", "compute", "checkpoint", "other")
FABRIC = "fabric"
WINDOW = 64  # steps that may be incomplete at once
PATIENCE = 16  # steps by which a rank may be behind the newest row before it counts as silent
LEARNED = 5  # first steps without a verdict: the noise is not known yet
SLACK, CAP, THRESHOLD = 0.7, 6.0, 15.0  # deviations
NOTICED = 0.05  # of the usual step: smaller lags are not reported
PAUSE = 3.0  # usual steps; a lag that long is reported at once
NOISE_MIN = 0.01  # of the usual step
FORGET = 0.05  # weight of a new step in the usual values
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class StepRows:
    """Rows of steps, in any order: seconds; `phases` has shape (n_rows, len(PHASES)), the others (n_rows,)."""

    step: Codes
    rank: Codes
    ts_ns: Codes
    phases: Floats
    comm: Floats


@dataclass(frozen=True)
class Event:
    """A straggler's beginning or end, reported at a step; `rank` is None for the fabric.

    `since_step` and `since_ns` are when it began; `lag_seconds` is its mean lag a step since then, and `lag_ratio` that
    over the usual step.
    """

    begins: bool
    rank: int | None
    phase: str
    step: int
    since_step: int
    since_ns: int
    reported_ns: int
    lag_seconds: float
    lag_ratio: float


class StragglerDetector:
    """Follows one run. The last entry of every array is the fabric's, those before it the ranks'."""

    def __init__(self, ranks: int, *, groups: Sequence[int] | None = None, usual_lags: Floats | None = None) -> None:
        """`groups` numbers each rank's peers; `usual_lags` are shares of a step. Raises: InvalidInputError."""
        given = [len(per_rank) for per_rank in (groups, usual_lags) if per_rank is not None]
        if ranks < 1 or any(count != ranks for count in given):
            raise InvalidInputError(f"ranks {ranks}: expected 1 or more, and a group and usual lag for each or none")
        self.ranks, self.judged, self.late_rows = ranks, 0, 0
        codes = np.zeros(ranks, np.int64) if groups is None else np.unique(groups, return_inverse=True)[1]
        self._groups = [np.flatnonzero(codes == group) for group in range(int(codes.max()) + 1)]
        self._rows = np.zeros((WINDOW, ranks, len(PHASES) + 1))
        self._times = np.zeros((WINDOW, ranks), np.int64)
        self._seen = np.zeros((WINDOW, ranks), np.bool_)
        self._next, self._newest = -1, -1
        self._series = _Series(np.append(np.zeros(ranks) if usual_lags is None else usual_lags, 0.0))
        self._last_seen = np.full(ranks, -1, np.int64)

    @property
    def next_step(self) -> int:
        """The first step that is not judged yet: rows of earlier steps are late."""
        return max(self._next, 0)

    @property
    def silent(self) -> tuple[int, ...]:
        """Ranks without a row for PATIENCE steps of the others."""
        return tuple(np.flatnonzero(self._last_seen < self._newest - PATIENCE).tolist())

    @property
    def stragglers(self) -> tuple[Event, ...]:
        """Events of the stragglers in progress, as of now."""
        active = np.flatnonzero(self._series.active)
        return tuple(self._series.event(int(place), begins=True, ranks=self.ranks) for place in active)

    def observe(self, rows: StepRows) -> list[Event]:
        """Takes rows of any number of steps, and returns the events of stragglers that began or ended.

        Rows of steps that were judged already are counted and dropped. Raises: InvalidInputError; then none is taken.
        """
        _check(rows, self.ranks)
        events: list[Event] = []
        order = np.argsort(rows.step, kind="stable") if (np.diff(rows.step) < 0).any() else slice(None)
        step = rows.step[order]
        for first in range(0, len(step), max(self.ranks, 1) * PATIENCE):
            part = slice(first, first + max(self.ranks, 1) * PATIENCE)
            chosen = np.arange(len(rows.step))[order][part]
            events += self._take(rows, chosen)
        return events

    def _take(self, rows: StepRows, chosen: Codes) -> list[Event]:
        events: list[Event] = []
        while len(chosen):
            step = rows.step[chosen]
            if self._next < 0:
                self._next = int(step[0])
            if int(step[0]) >= self._next + WINDOW:
                events += self._pass_over(int(step[0]) - WINDOW + 1)
            is_late, fits = step < self._next, step < self._next + WINDOW
            self.late_rows += int(is_late.sum())
            self._put(rows, chosen[fits & ~is_late])
            events += self._judge_complete()
            chosen = chosen[~fits]
        return events

    def _put(self, rows: StepRows, chosen: Codes) -> None:
        place, rank = rows.step[chosen] % WINDOW, rows.rank[chosen]
        self._rows[place, rank, :-1] = rows.phases[chosen]
        self._rows[place, rank, -1] = rows.comm[chosen]
        self._times[place, rank] = rows.ts_ns[chosen]
        self._seen[place, rank] = True
        if len(chosen):
            np.maximum.at(self._last_seen, rank, rows.step[chosen])
            self._newest = max(self._newest, int(rows.step[chosen].max()))

    def _judge_complete(self) -> list[Event]:
        """Judges steps in order, as long as they are complete or PATIENCE steps old."""
        events: list[Event] = []
        while self._next <= self._newest:
            place = self._next % WINDOW
            if not (self._seen[place].all() or self._next <= self._newest - PATIENCE):
                break
            events += self._judge(place)
        return events

    def _pass_over(self, step: int) -> list[Event]:
        """Judges the steps before this one from their present rows, and goes on from it."""
        events: list[Event] = []
        while self._next <= min(self._newest, step - 1):
            events += self._judge(self._next % WINDOW)
        self._next = max(self._next, step)
        return events

    def _judge(self, place: int) -> list[Event]:
        seen, step = self._seen[place], self._next
        self._next += 1
        if seen.sum() > 1:
            self.judged += 1
            self._follow(place, seen, step)
        self._seen[place] = False
        changed = self._series.changed()
        return [
            self._series.event(number, begins=bool(self._series.active[number]), ranks=self.ranks) for number in changed
        ]

    def _follow(self, place: int, seen: NDArray[np.bool_], step: int) -> None:
        phases, comm = self._rows[place, :, :-1], self._rows[place, :, -1]
        local = phases.sum(axis=1)
        ahead = np.full(self.ranks + 1, np.nan)
        by_phase = np.zeros((self.ranks, len(PHASES)))
        for group in self._groups:
            members = group if seen.all() else group[seen[group]]
            if len(members) > 1:
                ahead[members] = lags(local[members])
                by_phase[members] = phases[members] - np.median(phases[members], axis=0)
        fabric = float(comm[seen].min())
        usual = float(np.median((local + comm)[seen]))
        times = self._times[place][seen]
        self._series.add(ahead, by_phase, (fabric, usual), (step, int(times.min()), int(times.max())))


class _Series:
    """Sums of every rank and, last, of the fabric; arrays are (n_ranks + 1,)."""

    def __init__(self, usual_lags: Floats) -> None:
        self.usual_lags, count = usual_lags, len(usual_lags)
        self.steps, self.usual, self.fabric = 0, 0.0, 0.0
        self.now = (0, 0, 0)
        self.active = np.zeros(count, np.bool_)
        self.was_active = np.zeros(count, np.bool_)
        self.last, self.noise = np.full(count, np.nan), np.zeros(count)
        self.up, self.down = np.zeros(count), np.zeros(count)
        self.lost, self.length = np.zeros(count), np.zeros(count)
        self.by_phase = np.zeros((count - 1, len(PHASES)))
        self.begin = np.zeros((count, 2), np.int64)  # step and time

    def add(self, ahead: Floats, by_phase: Floats, all_wait: tuple[float, float], now: tuple[int, int, int]) -> None:
        """One step: lags in seconds, NaN where unknown; the fabric and the usual step; step, first and last time."""
        fabric, usual = all_wait
        self.now, self.steps = now, self.steps + 1
        weight = max(FORGET, 1 / self.steps)
        self.usual += weight * (min(usual, 2 * self.usual or usual) - self.usual)
        ahead[-1] = fabric - self.fabric if self.steps > LEARNED else 0.0
        if not self.active[-1]:
            self.fabric += weight * (min(fabric, 2 * self.fabric or fabric) - self.fabric)
        ratio = ahead / max(self.usual, 1e-9) - self.usual_lags
        self._learn(ratio, weight)
        if self.steps > LEARNED:
            self._sum(np.nan_to_num(ratio), by_phase)

    def _learn(self, ratio: Floats, weight: float) -> None:
        """Update the noise of each, (n_ranks + 1,): its mean absolute change from step to step."""
        change = np.abs(ratio - self.last)
        self.last = np.where(np.isnan(ratio), self.last, ratio)
        is_known = ~np.isnan(change)
        limit = np.where(self.noise > 0, 4 * self.noise, np.inf)
        self.noise[is_known] += weight * (np.minimum(change, limit)[is_known] - self.noise[is_known])

    def _sum(self, ratio: Floats, by_phase: Floats) -> None:
        floor = max(float(np.median(self.noise[:-1])), NOISE_MIN)
        deviation = np.maximum(self.noise, floor)
        self.up = np.maximum(self.up + np.minimum(ratio / deviation - SLACK, CAP), 0.0)
        rests = (self.up == 0) & ~self.active
        self.lost[rests], self.length[rests] = 0.0, 0.0
        self.by_phase[rests[:-1]] = 0.0
        goes = ~rests
        self.begin[goes & (self.length == 0)] = self.now[:2]
        self.lost[goes] += ratio[goes]
        self.length[goes] += 1
        self.by_phase[goes[:-1]] += by_phase[goes[:-1]]
        mean = self.lost / np.maximum(self.length, 1)
        begins = ~self.active & goes & (mean >= NOTICED) & ((self.up > THRESHOLD) | (ratio > PAUSE))
        below = np.minimum((mean / 2 - ratio) / deviation, CAP)
        self.down = np.where(self.active, np.maximum(self.down + below, 0.0), 0.0)
        ends = self.active & (self.down > THRESHOLD)
        self.was_active = self.active
        self.active = (self.active | begins) & ~ends
        self.up[ends] = 0.0

    def changed(self) -> list[int]:
        """Places that began or ended in the last step."""
        places = np.flatnonzero(self.active != self.was_active)
        self.was_active = self.active
        return [int(place) for place in places]

    def event(self, place: int, *, begins: bool, ranks: int) -> Event:
        """The event of a place."""
        is_fabric = place == ranks
        phase = FABRIC if is_fabric else PHASES[int(np.argmax(self.by_phase[place]))]
        since_step, since_ns = (int(number) for number in self.begin[place])
        ratio = float(self.lost[place] / max(self.length[place], 1.0))
        rank = None if is_fabric else place
        return Event(begins, rank, phase, self.now[0], since_step, since_ns, self.now[2], ratio * self.usual, ratio)


def _check(rows: StepRows, ranks: int) -> None:
    count = len(rows.step)
    shapes = (rows.rank.shape, rows.ts_ns.shape, rows.comm.shape)
    if any(shape != (count,) for shape in shapes) or rows.phases.shape != (count, len(PHASES)):
        raise InvalidInputError(f"{count} steps with arrays of shapes {shapes}, {rows.phases.shape}: expected as many")
    if count and not (rows.rank.min() >= 0 and rows.rank.max() < ranks):
        raise InvalidInputError(f"rank {rows.rank.min()} to {rows.rank.max()}: expected 0 to {ranks - 1}")
    if count and not (rows.step.min() >= 0 and np.isfinite(rows.phases).all() and np.isfinite(rows.comm).all()):
        raise InvalidInputError("rows of steps: expected steps from 0 on and finite seconds")
