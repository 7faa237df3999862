"""The weather of the systems in a store; a learned model is cached until there is more to learn from."""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.schema.answers.weather import SystemWeather
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.question import HOURS_MAX
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
WAIT_SECONDS = 20.0  # for another thread that learns, where nothing was learned before
NEWEST_RUNS = 500  # newest runs, to name the systems that there are
STALE_TIMES = 10  # of the time for which it is fresh, an answer is given while a newer one is learned
REFIT_SHARE = 0.05  # of the runs learned from: with fewer new ones the chosen model is kept, and looks at them all
_log = logging.getLogger(__name__)


@dataclass
class _LearnedWeather:
    """The weather learned of a system, the store's revision then, and the time when that was last checked."""

    weather: Weather
    fitted_count: int  # completed runs when its model was fitted
    lately: Mapping[str, LatelyRun]
    newest_ended_ns: int
    revision: tuple[int, int]
    checked_at: float
    running: tuple[int, int]  # runs and jobs


class WeatherService:
    """Answers over one store. New runs are looked for by the first who asks after `fresh_seconds`.

    That one and all others get the weather as it was until the newer one is learned, unless it is STALE_TIMES as old.
    """

    def __init__(self, store: Store, *, fresh_seconds: float = 0.0) -> None:
        self.store = store
        self._fresh_seconds = fresh_seconds
        self._learned_of: dict[str, _LearnedWeather] = {}
        self._learning = threading.Lock()

    def answer(
        self,
        system: str | None = None,
        workload: str | None = None,
        *,
        hours: int = HOURS_MAX,
        now_ns: int | None = None,
    ) -> SystemWeather:
        """The weather of the workloads of the last 28 days, or of one, on a system; None is that of most runs.

        Raises: InvalidInputError where no run of them has completed; UnavailableError while it is still being learned.
        """
        if not 1 <= hours <= HOURS_MAX:
            raise InvalidInputError(f"hours {hours}: expected 1 to {HOURS_MAX}")
        where = system if system is not None else usual_system(self.store, workload)
        at_ns = time.time_ns() if now_ns is None else now_ns
        learned = self._refreshed(where)
        answers = [
            workload_weather(learned.weather, lately, at_ns, hours)
            for lately in _chosen(learned, where, workload, at_ns)
        ]
        return SystemWeather(
            where,
            at_ns,
            learned.weather.chosen or None,
            candidates_of(learned.weather),
            0 if learned.weather.runs is None else len(learned.weather.runs),
            learned.newest_ended_ns,
            *learned.running,
            tuple(answers),
            warnings_of(learned.weather, learned.newest_ended_ns, at_ns),
        )

    def _refreshed(self, system: str) -> _LearnedWeather:
        """Return the cached weather, and learn again where it is stale: before that where it is too old."""
        learned = self._learned_of.get(system)
        age = time.monotonic() - learned.checked_at if learned is not None else 0.0
        if learned is not None and age <= STALE_TIMES * self._fresh_seconds:
            if age > self._fresh_seconds and self._learning.acquire(blocking=False):
                threading.Thread(target=self._learn_beside, args=(system,), name="weather", daemon=True).start()
            return learned
        if not self._learning.acquire(timeout=0 if learned else WAIT_SECONDS):
            if learned is None:
                raise UnavailableError(f"the weather of system {system!r} is still being learned: ask again soon")
            return learned
        try:
            return self._relearned(system)
        finally:
            self._learning.release()

    def _learn_beside(self, system: str) -> None:
        try:
            self._relearned(system)
        except Exception:  # noqa: BLE001 - who asks when it is too old is told
            _log.exception("the weather of system %r was not learned again", system)
        finally:
            self._learning.release()

    def _relearned(self, system: str) -> _LearnedWeather:
        """Check for new runs, and learn from them."""
        now, learned = time.monotonic(), self._learned_of.get(system)
        if learned is not None and now - learned.checked_at <= self._fresh_seconds:
            return learned
        with self.store.catalog.read() as session:
            revision = session.runs.stand(RunFilter(system=system, state=RunState.COMPLETED))
            running = session.runs.stand(RunFilter(system=system, state=RunState.RUNNING))[0]
        jobs = self.store.jobs.running(system)
        if learned is not None and learned.revision == revision:
            learned.checked_at, learned.running = now, (running, jobs)
            return learned
        runs = self._runs(system)
        weather, fitted_count = _weather_of(stored_ratios(self.store, runs), revision[0], learned)
        if len(self._learned_of) >= SYSTEMS_MAX:
            self._learned_of.clear()
        newest = max(run.ended_ns or 0 for run in runs)
        lately = lately_run_of(self.store, runs, weather)
        learned = _LearnedWeather(weather, fitted_count, lately, newest, revision, time.monotonic(), (running, jobs))
        self._learned_of[system] = learned
        return learned

    def _runs(self, system: str) -> list[Run]:
        runs = all_runs(self.store, RunFilter(system=system, state=RunState.COMPLETED), limit=RUNS_MAX)
        if not runs:
            raise InvalidInputError(f"system {system!r}: no completed run is stored, known are {self._systems()}")
        return runs

    def _systems(self) -> str:
        runs = all_runs(self.store, RunFilter(state=RunState.COMPLETED), limit=NEWEST_RUNS)
        return ", ".join(sorted({run.system for run in runs})) or "none"


def _weather_of(ratios: pd.DataFrame, completed: int, before: _LearnedWeather | None) -> tuple[Weather, int]:
    """Return the weather of these runs, and how many had completed when its model was fitted."""
    if before is None or abs(completed - before.fitted_count) > REFIT_SHARE * len(ratios):
        return Weather().fit(ratios), completed
    return before.weather.over(ratios), before.fitted_count


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


def _chosen(learned: _LearnedWeather, system: str, workload: str | None, now_ns: int) -> list[LatelyRun]:
    if workload is None:
        return [lately for lately in learned.lately.values() if lately.newest_ended_ns >= now_ns - RECENT_NS]
    if workload not in learned.lately:
        raise InvalidInputError(
            f"workload {workload!r}: none of the newest {RUNS_MAX} completed runs on system {system!r} is of it, known "
            f"are {', '.join(learned.lately)}"
        )
    return [learned.lately[workload]]
