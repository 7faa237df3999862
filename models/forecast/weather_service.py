"""Answers about the weather of the systems in a store; what was learned is kept until there is more to learn from."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.weather import HOURS_MAX, SystemWeather
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.features import all_runs, summaries
from crosswind.data.store.store import Store
from crosswind.models.association.outcomes import usual_system
from crosswind.models.forecast.level_changes import level_changes
from crosswind.models.forecast.now import RECENT_NS, LatelyRun, candidates_of, warnings_of, workload_weather
from crosswind.models.forecast.stored_ratios import stored_ratios
from crosswind.models.forecast.weather import Weather

RUNS_MAX = 900  # newest of a system: learned from in seconds, and too few for the network, which takes a minute
SYSTEMS_MAX = 64
WAIT_SECONDS = 20.0  # for another's learning, where nothing was learned before
LOOKED_AT = 500  # newest runs, to name the systems that there are


@dataclass
class _Kept:
    """The state learned of a system, what stood in the store then, and when that was looked at."""

    weather: Weather
    lately: Mapping[str, LatelyRun]
    newest_ended_ns: int
    stand: tuple[int, int]
    looked_at: float
    running: tuple[int, int]  # runs and jobs


class WeatherService:
    """Answers over one store; of what came since it hears after `fresh_seconds` at most, if it is not learning."""

    def __init__(self, store: Store, *, fresh_seconds: float = 0.0) -> None:
        self.store = store
        self._fresh_seconds = fresh_seconds
        self._kept: dict[str, _Kept] = {}
        self._learning = threading.Lock()

    def answer(
        self,
        system: str | None = None,
        workload: str | None = None,
        *,
        hours: int = HOURS_MAX,
        now_ns: int | None = None,
    ) -> SystemWeather:
        """Of the workloads that ran in the last 28 days, or of one; without a system, of that of most runs.

        Raises: InvalidInputError where no run of them has completed; UnavailableError while it is still being learned.
        """
        if not 1 <= hours <= HOURS_MAX:
            raise InvalidInputError(f"hours {hours}: expected 1 to {HOURS_MAX}")
        asked = system if system is not None else usual_system(self.store, workload)
        at_ns = time.time_ns() if now_ns is None else now_ns
        kept = self._renewed(asked)
        answers = [
            workload_weather(kept.weather, lately, at_ns, hours) for lately in _asked(kept, asked, workload, at_ns)
        ]
        return SystemWeather(
            asked,
            at_ns,
            kept.weather.chosen or None,
            candidates_of(kept.weather),
            0 if kept.weather.runs is None else len(kept.weather.runs),
            kept.newest_ended_ns,
            *kept.running,
            tuple(answers),
            warnings_of(kept.weather, kept.newest_ended_ns, at_ns),
        )

    def _renewed(self, system: str) -> _Kept:
        """Return what is kept, if it is fresh or another renews it right now; else what is learned anew."""
        kept = self._kept.get(system)
        if kept is not None and time.monotonic() - kept.looked_at <= self._fresh_seconds:
            return kept
        if not self._learning.acquire(timeout=0 if kept else WAIT_SECONDS):
            if kept is None:
                raise UnavailableError(f"the weather of system {system!r} is still being learned: ask again soon")
            return kept
        try:
            return self._looked_at(system)
        finally:
            self._learning.release()

    def _looked_at(self, system: str) -> _Kept:
        """Looks whether anything came new, and learns from it."""
        now, kept = time.monotonic(), self._kept.get(system)
        if kept is not None and now - kept.looked_at <= self._fresh_seconds:
            return kept
        with self.store.catalog.read() as session:
            stand = session.runs.stand(RunFilter(system=system, state=RunState.COMPLETED))
            running = session.runs.stand(RunFilter(system=system, state=RunState.RUNNING))[0]
        jobs = self.store.jobs.running(system)
        if kept is not None and kept.stand == stand:
            kept.looked_at, kept.running = now, (running, jobs)
            return kept
        runs = self._runs(system)
        weather = Weather().fit(stored_ratios(self.store, runs))
        if len(self._kept) >= SYSTEMS_MAX:
            self._kept.clear()
        newest = max(run.ended_ns or 0 for run in runs)
        kept = _Kept(
            weather, lately_run_of(self.store, runs, weather), newest, stand, time.monotonic(), (running, jobs)
        )
        self._kept[system] = kept
        return kept

    def _runs(self, system: str) -> list[Run]:
        runs = all_runs(self.store, RunFilter(system=system, state=RunState.COMPLETED), limit=RUNS_MAX)
        if not runs:
            raise InvalidInputError(f"system {system!r}: no completed run is stored, known are {self._systems()}")
        return runs

    def _systems(self) -> str:
        runs = all_runs(self.store, RunFilter(state=RunState.COMPLETED), limit=LOOKED_AT)
        return ", ".join(sorted({run.system for run in runs})) or "none"


def lately_run_of(store: Store, runs: Sequence[Run], weather: Weather) -> dict[str, LatelyRun]:
    """The workloads of these runs by name, with the changes of level of the last 28 days' runs."""
    table = summaries(store, runs)
    timed = table[table["started_ns"].notna() & (table["step_mean_seconds"] > 0)]
    recent = timed[timed["started_ns"] >= max((run.started_ns or 0 for run in runs), default=0) - RECENT_NS]
    compared = [] if weather.runs is None else weather.runs.workload.tolist()
    return {name: _lately(name, runs, compared.count(name), recent) for name in sorted({run.workload for run in runs})}


def _lately(name: str, runs: Sequence[Run], compared: int, recent: pd.DataFrame) -> LatelyRun:
    own = [run for run in runs if run.workload == name]
    changes = level_changes(recent[recent["workload"] == name])
    return LatelyRun(name, len(own), compared, max(run.ended_ns or 0 for run in own), tuple(changes))


def _asked(kept: _Kept, system: str, workload: str | None, now_ns: int) -> list[LatelyRun]:
    if workload is None:
        return [lately for lately in kept.lately.values() if lately.newest_ended_ns >= now_ns - RECENT_NS]
    if workload not in kept.lately:
        raise InvalidInputError(
            f"workload {workload!r}: none of the newest {RUNS_MAX} completed runs on system {system!r} is of it, known "
            f"are {', '.join(kept.lately)}"
        )
    return [kept.lately[workload]]
