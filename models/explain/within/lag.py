"""The rank that the other ranks of its run wait for.

Ranks of one run do the same work in the same weather, so each is compared with its peers, segment by segment: no other
run is needed. Of two ranks the one is measured against the other; of more, the last one against the median of the
others, and what it costs ends where the next rank would have kept them waiting.

Source: Lin et al., "Understanding Stragglers in Large Model Training Using What-if Analysis", OSDI 2025.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.answers.explanations import UNKNOWN, Interval
from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.certainty import contenders, settled
from crosswind.models.explain.cohort.columns import COLUMNS
from crosswind.models.explain.cohort.reference import TIME, Reference
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.evidence.step_columns import LOCAL_PHASES
from crosswind.models.explain.significance import Finding
from crosswind.models.explain.split import Split, resampled, split

DELAYS = 0.1  # of a segment without it, from which on a lag is worth a verdict
CLEAR = 1.5  # times what the next rank costs
LATE = 0.5  # of its mean lag, from which on a rank is late in a segment, or in another run
MOST = 0.5  # of the runs of a cohort, above which a lag is usual
SETTLED, SHORTEST = 0.9, 5  # share of segments that are late since a step, and are not before it; segments of either
UNEVEN = "uneven"
LOCAL = [COLUMNS.index(name) for name in LOCAL_PHASES]


@dataclass(frozen=True)
class Lag:
    """A rank that arrives after its peers, by `seconds` a segment more than the median of them; `row` is its place.

    `late_ratio` is the share of segments since `since_step` (None: since the first) in which it is late, and by
    `late_seconds`, their mean.
    `parts` split what that costs the run a segment; the expected time of them is the time without it.
    """

    rank: int
    row: int
    phase: str
    seconds: Interval
    late_seconds: float
    late_ratio: float
    since_step: int | None
    parts: Split

    @property
    def cost(self) -> float:
        """Seconds a segment that the run would save if the rank were as quick as its peers."""
        return self.parts.excess

    @property
    def cause(self) -> str:
        """The cause with the most evidence; UNKNOWN where more of the lag stays unexplained, or redraws disagree."""
        return settled(self.parts.largest, self.parts)

    @property
    def contenders(self) -> tuple[str, ...]:
        """Causes of which an unknown one may be; none where more of the lag stays unexplained."""
        return () if self.parts.largest == UNKNOWN else contenders(self.parts.largest, self.parts)

    @property
    def finding(self) -> Finding:
        """The lag as a finding on its rank."""
        if self.cause == UNKNOWN:
            return Finding(UNKNOWN, self.cost, self.row, self.phase, self.contenders)
        return Finding(self.cause, self.cost, self.row)


def lag_of(run: Segments) -> Lag | None:
    """Return the rank that costs the run most, where that is surely a tenth of its time and clearly more than the next.

    None for a single rank and for condensed segments.
    """
    if not len(run.behind) or run.ranks < 2:
        return None
    ranks, places = np.unique(run.culprits, return_inverse=True)
    costs = np.bincount(places, run.behind)
    most = int(np.argmax(costs))
    if costs[most] <= CLEAR * np.delete(costs, most).max(initial=0.0):
        return None
    return _lag(run, int(ranks[most]))


def is_usual_lag(lag: Lag, cohort: Sequence[Segments]) -> bool:
    """Return whether the same rank lags by half as much in most of these runs; False without any."""
    compared = [run for run in cohort if len(run.of_ranks) > lag.row]
    behind = [float(run.contrasts()[lag.row, LOCAL].sum()) >= LATE * lag.seconds.value for run in compared]
    return bool(behind) and float(np.mean(behind)) > MOST


def without_artefacts(run: Segments, lag: Lag | None) -> Segments:
    """Return the segments without uneven work where a rank lags since a step.

    Against its mean over the whole run such a rank has more work at times: on it, not on one rank after another.
    """
    return run if lag is None or lag.since_step is None else run.without(UNEVEN)


def _lag(run: Segments, rank: int) -> Lag | None:
    run = run.without(UNEVEN)  # which falls on one rank after another
    own = run.differences(rank)
    late, cost = own[:, LOCAL].sum(axis=1), run.behind * run.signs(rank)
    again = resampled(np.column_stack([own, late, cost]), np.random.default_rng(0))
    low, high = np.quantile(again[:, -2], (0.05, 0.95))
    if low <= 0 or np.quantile(again[:, -1], 0.05) <= DELAYS * (run.time - cost.mean()):
        return None
    is_late = late > LATE * late.mean()
    since = _since(is_late)
    phases = own[:, LOCAL].mean(axis=0)
    return Lag(
        rank,
        run.numbers.index(rank),
        LOCAL_PHASES[int(np.argmax(phases))],
        Interval(float(late.mean()), float(low), float(high)),
        float(late[is_late].mean()),
        float(is_late[since:].mean()),
        int(run.steps[since]) if since else None,
        _parts(run, own, again[:, :-2], float(min(cost.mean() / late.mean(), 1.0))),
    )


def _parts(run: Segments, own: Floats, again: Floats, cost_ratio: float) -> Split:
    """Split the cost, `cost_ratio` of the lag, as the lag's evidence has it; again: (REPLICATES, len(COLUMNS))."""
    usual = run.means - cost_ratio * own.mean(axis=0)
    reference = Reference(usual[None, :], usual, dict.fromkeys((*COLUMNS, TIME), 0.0))
    return split(run.means, reference, again=cost_ratio * again)


def _since(is_late: NDArray[np.bool_]) -> int:
    """Return the segment from which on nearly all are late and before which nearly none is; 0 where there is none."""
    if len(is_late) < 2 * SHORTEST:
        return 0
    agreeing = np.cumsum(np.where(is_late, -1, 1))
    first = int(np.argmax(agreeing[SHORTEST - 1 : len(is_late) - SHORTEST])) + SHORTEST
    before, after = is_late[:first].mean(), is_late[first:].mean()
    return first if after >= SETTLED and before <= 1 - SETTLED else 0
