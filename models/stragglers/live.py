"""The stragglers of one run, from its stored steps: of one in progress those that it has now, and those it had."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.lake.steps_summary import per_step, rank_steps, window_of
from crosswind.data.schema.answers.stragglers import Episode, RunStragglers, Slowdown
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run, RunState, cohort_key
from crosswind.data.store.store import Store
from crosswind.models.stragglers.detector import LEARNED, PHASES, Event, StepRows, StragglerDetector
from crosswind.models.stragglers.observed import local_times
from crosswind.models.stragglers.peers import lags
from crosswind.models.stragglers.replayed_steps import ROWS_AT_ONCE, replayed_steps
from crosswind.models.stragglers.stages import stage_numbers

RANKS_MAX = 65_536  # some hundred megabytes
EARLIER, EARLIER_MIN = 20, 3  # earlier runs of its cohort that usual lags are taken from, at most and at least
SEARCHED_RUNS = 500  # of its workload, among which they are searched
_COLUMNS = ("step", "rank", "ts_ns", "comm_seconds", *(f"{phase}_seconds" for phase in PHASES))


@dataclass
class RunWatch:
    """Follows a run in the store: every call reads the steps that came since the last one."""

    store: Store
    run: Run
    ranks: int
    detector: StragglerDetector
    next_step: int = 0
    newest: tuple[int, int] | None = None  # step and time
    events: list[Event] = field(default_factory=list)
    waited: bool = False
    stages: list[int] | None = None

    @classmethod
    def of(cls, store: Store, run_id: str) -> "RunWatch":
        """A watch from the run's first step on. Raises: NotFoundError, InvalidInputError for too many ranks."""
        with store.catalog.read() as session:
            run, recorded = session.runs.get(run_id), session.ranks.of(run_id)
        named = max((rank.rank for rank in recorded), default=0) + 1
        ranks = max(run.world_size or 1, named)
        if ranks > RANKS_MAX:
            raise InvalidInputError(f"run {run_id!r}: {ranks} ranks, expected {RANKS_MAX} at most")
        stages, usual = stage_numbers(store, run, ranks), usual_lags(store, run, ranks)
        return cls(store, run, ranks, StragglerDetector(ranks, groups=stages, usual_lags=usual), stages=stages)

    def look(self) -> RunStragglers:
        """Reads on, and returns the stragglers so far. Raises: MalformedError."""
        steps = per_step(self.store.lake, self.run.run_id, window_of(self.run, self.next_step))["step"]
        width = max(1, ROWS_AT_ONCE // self.ranks)
        for first in range(0, len(steps), width):
            part = steps.iloc[first : first + width]
            window = window_of(self.run, int(part.iloc[0]), int(part.iloc[-1]))
            self._take(rank_steps(self.store.lake, self.run.run_id, (), window, columns=_COLUMNS))
        with self.store.catalog.read() as session:
            self.run = session.runs.get(self.run.run_id)
        return self._summary()

    def _take(self, rows: pd.DataFrame) -> None:
        whole = rows[list(_COLUMNS)].dropna()
        whole = whole[(whole["rank"] >= 0) & (whole["rank"] < self.ranks)]
        if whole.empty:
            return
        phases = whole[[f"{phase}_seconds" for phase in PHASES]].to_numpy(np.float64)
        step, rank, ts_ns = (whole[name].to_numpy(np.int64) for name in ("step", "rank", "ts_ns"))
        comm = whole["comm_seconds"].to_numpy(np.float64)
        self.waited = self.waited or bool(comm.any())
        self.events += self.detector.observe(StepRows(step, rank, ts_ns, phases, comm))
        self.newest = (int(step.max()), int(ts_ns.max()))
        self.next_step = self.detector.next_step

    def _summary(self) -> RunStragglers:
        step, ts_ns = self.newest or (None, None)
        return RunStragglers(
            self.run.run_id,
            str(self.run.state),
            self.ranks,
            self.detector.judged,
            step,
            ts_ns,
            tuple(_episodes(self.events)),
            self._slowdown(),
            self.detector.silent,
            tuple(self._warnings()),
        )

    def _slowdown(self) -> Slowdown | None:
        if self.newest is None or self.ranks == 1 or not self.waited:
            return None
        replay = replayed_steps(self.store, self.run, self.ranks, self.newest[0], stages=self.stages)
        return None if replay is None else replay.slowdown

    def _warnings(self) -> Iterable[str]:
        if self.newest is None:
            yield "no steps of it are stored that tell their phases: crosswind.run records them"
        elif self.ranks == 1:
            yield "it has one rank, which has no peers to be compared with"
        elif not self.waited:
            yield "no rank recorded waiting for others, so ranks cannot be compared: run.watch(model) records it"
        elif self.detector.judged <= LEARNED:
            yield f"{self.detector.judged} steps of several ranks are there, more than {LEARNED} are needed"
        if self.newest is not None and self.detector.silent and self.run.state is RunState.RUNNING:
            named = ", ".join(str(rank) for rank in self.detector.silent[:10])
            yield f"no recent steps have come of these ranks: {named}"


def stragglers_of_run(store: Store, run_id: str) -> RunStragglers:
    """The stragglers of one run, over and in progress, from all that is stored. Raises: NotFoundError."""
    return RunWatch.of(store, run_id).look()


def usual_lags(store: Store, run: Run, ranks: int) -> Floats | None:
    """Usual lags of the ranks in the run's cohort, as shares of a step, (n_ranks,); None where unknown.

    The median of the half of up to EARLIER runs before it that agree best (the shorth), for disturbed ones scatter; at
    least 0. Raises: MalformedError.
    """
    wanted, place = RunFilter(workload=run.workload, system=run.system), (run.started_ns or 0, run.run_id)
    with store.catalog.read() as session:
        among = session.runs.find(wanted, before=place, limit=SEARCHED_RUNS)
    cohort = cohort_key(run)
    table = local_times(store, [peer for peer in among if cohort_key(peer) == cohort][:EARLIER])
    if table.empty:
        return None
    logs = table.pivot(index="run_id", columns="rank", values="log_local").reindex(columns=range(ranks)).dropna()
    whole = np.exp(logs.to_numpy(np.float64))
    if len(whole) < EARLIER_MIN or ranks < 2:
        return None
    behind = np.sort(lags(whole) / whole.max(axis=1, keepdims=True), axis=0)
    half = len(behind) // 2
    first = np.argmin(behind[half:] - behind[: len(behind) - half], axis=0)
    middle = np.median(np.stack([behind[first + place, np.arange(ranks)] for place in range(half + 1)]), axis=0)
    return np.asarray(np.maximum(middle, 0.0))


def _episodes(events: Iterable[Event]) -> list[Episode]:
    """Episodes from events: beginnings with their ends."""
    by_rank: dict[int | None, list[Episode]] = {}
    for event in events:
        episodes = by_rank.setdefault(event.rank, [])
        if event.begins:
            noticed = (event.reported_ns - event.since_ns) / 1e9
            episodes.append(_episode(event, noticed))
        elif episodes and episodes[-1].last_step is None:
            episodes[-1] = _episode(event, episodes[-1].noticed_after_seconds)
    return sorted((episode for own in by_rank.values() for episode in own), key=lambda episode: episode.first_step)


def _episode(event: Event, noticed: float) -> Episode:
    last, ended = (None, None) if event.begins else (event.step, event.reported_ns)
    lag = (event.lag_seconds, event.lag_ratio)
    return Episode(event.rank, event.phase, event.since_step, last, event.since_ns, noticed, ended, *lag)
