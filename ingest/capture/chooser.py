"""The ranks of a run to trace, and when: a pure function of the steps that its ranks have recorded.

A capture costs time and bytes, so it has a reason: an early baseline, a rank that the others wait for, a run that has
become slower, or, once, that nothing was noticed for long: a rank that is a little or unevenly slow from the beginning
may stay within the noise. Its ranks are those that the others wait for, the rank that waits most, and an ordinary one.
"""

from collections import deque
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean, median

from crosswind.ingest.capture.lags import LEARNED, Lags
from crosswind.ingest.capture.steps import RankStep, StepTable

WARM_UP = 10  # steps, which compile, allocate and connect
QUIET = 48  # judged steps without a reason, after which the ranks that lag most are traced all the same
RECENT = 16  # steps that the waits of ranks are of
KEPT = 64  # steps that are remembered, so that a change is compared with what was before it
SECOND = 0.5  # of the largest lag, above which another rank is a culprit as well


class Role(StrEnum):
    """Why a rank is traced."""

    CULPRIT = "culprit"
    VICTIM = "victim"
    ORDINARY = "ordinary"
    ASKED = "asked for"


class Reason(StrEnum):
    """Why steps are traced."""

    BASELINE = "baseline"
    SLOW_RANK = "others wait for a rank"
    SLOWER = "steps became slower"
    QUIET = "nothing was noticed"
    ASKED = "by hand"


@dataclass(frozen=True)
class Choice:
    """The ranks to trace now, each with its role, and the reason; `newest` is the last step of which a row is there."""

    reason: Reason
    ranks: Mapping[int, Role]
    newest: int


@dataclass
class Chooser:
    """Follows the steps of one run."""

    most: int = 3
    table: StepTable = field(default_factory=StepTable)
    lags: Lags = field(default_factory=Lags)
    has_baseline: bool = False
    has_culprits: bool = False  # were traced
    _kept: deque[Mapping[int, tuple[float, float]]] = field(default_factory=lambda: deque(maxlen=KEPT))
    _noted: set[int] = field(default_factory=set)  # ranks whose present lag has been traced already
    _pending: set[int] = field(default_factory=set)

    def observe(self, rows: Iterable[RankStep], *, left_out: Container[int] = ()) -> Choice | None:
        """Take rows of any number of steps. Return what to trace now, if anything; steps `left_out` do not count."""
        for row in rows:
            self.table.add(row)
        for step, of_ranks in self.table.complete():
            if step >= WARM_UP // 2 and step not in left_out and len(of_ranks) > 0:
                self._judge(of_ranks)
        return self._reasoned()

    def _judge(self, rows: Mapping[int, RankStep]) -> None:
        lags = self.lags.add(rows)
        self._kept.append({rank: (lags[rank], row.waited) for rank, row in rows.items()})
        noticed = {rank for rank, series in self.lags.ranks.items() if series.is_noticed}
        self._pending |= noticed - self._noted
        self._noted -= {rank for rank in self._noted if self.lags.ranks[rank].total == 0.0}

    def _reasoned(self) -> Choice | None:
        if self.table.newest < WARM_UP or not self._kept:
            return None
        if self._pending:
            return Choice(Reason.SLOW_RANK, self.ranks(), self.table.newest)
        if self.lags.is_slower:
            return Choice(Reason.SLOWER, self.ranks(), self.table.newest)
        if not self.has_baseline:
            return Choice(Reason.BASELINE, {self._ordinary(set()): Role.ORDINARY}, self.table.newest)
        if not self.has_culprits and len(self._kept) >= QUIET and len(self._kept[-1]) > 1:
            return Choice(Reason.QUIET, self.ranks(), self.table.newest)
        return None

    def taken(self, choice: Choice) -> None:
        """Note that a choice is being traced: the same cause is no reason again before it has gone."""
        self.has_baseline = True
        self._noted |= self._pending
        self._pending.clear()
        self.has_culprits = self.has_culprits or choice.reason is not Reason.BASELINE
        if choice.reason in (Reason.SLOW_RANK, Reason.SLOWER):
            self.lags.accept_pace()

    def ranks(self) -> dict[int, Role]:
        """Return the ranks that tell most now, the surest culprit first, at most as many as may be traced."""
        late, lagging, waits = self._late(), self._lagging(), self._recent(1)
        order = sorted(late, key=lambda rank: (rank not in lagging, -late[rank]))
        first, least = order[0], min(late.values())
        culprits = [rank for rank in order if late[rank] - least >= SECOND * (late[first] - least)]
        chosen = dict.fromkeys(culprits[: max(self.most - 1, min(self.most, 2))], Role.CULPRIT)
        victims = sorted(waits.keys() - chosen.keys(), key=lambda rank: -waits[rank])[:1]
        chosen |= dict.fromkeys(victims, Role.VICTIM)
        if len(chosen) < self.most and waits.keys() - chosen.keys():
            chosen[self._ordinary(set(chosen))] = Role.ORDINARY
        return dict(list(chosen.items())[: self.most])

    def _late(self) -> dict[int, float]:
        """Return each rank's mean lag since the cause began; if none is noticed, by how much more than before."""
        steps = list(self._kept)
        since = self._since()
        after, before = means(steps[-since:], 0), means(steps[:-since], 0)
        if self._lagging() or len(steps) - since < LEARNED:
            return after
        return {rank: lag - before.get(rank, 0.0) for rank, lag in after.items()}

    def _recent(self, place: int) -> dict[int, float]:
        return means(list(self._kept)[-RECENT:], place)

    def _lagging(self) -> set[int]:
        """Return the ranks that began to lag and have not been traced since."""
        return {rank for rank in self._pending if self.lags.ranks[rank].is_noticed and rank in self._kept[-1]}

    def _since(self) -> int:
        """Return the number of steps since the cause began: a rank's lag, or the run's slowness; else of all kept."""
        lengths = [self.lags.ranks[rank].length for rank in self._lagging()]
        return max(lengths, default=self.lags.run.length) or len(self._kept)

    def _ordinary(self, others: set[int]) -> int:
        """Return the rank nearest to the middle of all, but for those that are chosen already."""
        lags = self._recent(0)
        middle = median(lags.values())
        return min(lags.keys() - others, key=lambda rank: (abs(lags[rank] - middle), rank))


def means(steps: Iterable[Mapping[int, tuple[float, float]]], place: int) -> dict[int, float]:
    """Return each rank's mean of the values at this place."""
    seen: dict[int, list[float]] = {}
    for step in steps:
        for rank, values in step.items():
            seen.setdefault(rank, []).append(values[place])
    return {rank: fmean(values) for rank, values in seen.items()}
