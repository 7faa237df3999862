"""The weather as reported: each workload's slowdown now and in the next hours, and its evidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from crosswind.data.schema.prediction import Prediction
from crosswind.models.forecast.backtest import RUNS_MIN, Score
from crosswind.models.forecast.level_changes import NOTICED, LevelChange
from crosswind.models.forecast.observations import HOUR_NS, Times
from crosswind.models.forecast.weather import HORIZONS_HOURS, Weather
from crosswind.models.forecast.weather_models import Climate
from crosswind.models.surrogate.exceedance import exceedance

HOURS_MAX = int(HORIZONS_HOURS[-1])  # as far as the backtest asks
RECENT_NS = 28 * 24 * HOUR_NS
SILENT_NS = 24 * HOUR_NS
LOW, MEDIAN, HIGH = 0.05, 0.5, 0.95


class Standing(StrEnum):
    """The place of a workload's median beside its usual time; less than 5 % either way is as usual."""

    SLOWER = "slower"
    USUAL = "usual"
    FASTER = "faster"
    UNKNOWN = "unknown"  # too few runs: its band is a guess


@dataclass(frozen=True)
class Hour:
    """A run that begins at this time takes `ratio` times its usual time in the median, with 90 % from low to high."""

    at_ns: int
    standing: Standing
    ratio: float
    low_ratio: float
    high_ratio: float


@dataclass(frozen=True)
class HorizonSkill:
    """Skill over the climate of what was told so many hours before."""

    hours: float
    skill: float


@dataclass(frozen=True)
class Candidate:
    """A way to predict, and what it reached when it was asked again about the newer half of the runs.

    `loss` is the mean pinball loss of the log ratio, `skill` 1 - loss / loss of the climate, `coverage_90` the share in
    the 90 % band before that was corrected by how it held.
    """

    name: str
    loss: float
    skill: float
    coverage_90: float
    by_horizon: tuple[HorizonSkill, ...]


@dataclass(frozen=True)
class LatelyRun:
    """A workload's completed runs on the system, as far as known; `compared` had enough earlier runs like them."""

    workload: str
    runs: int
    compared: int
    newest_ended_ns: int
    changes: tuple[LevelChange, ...]


@dataclass(frozen=True)
class WorkloadWeather:
    """One workload's slowdown; the first of `hours` is now, the others are whole hours.

    `chance_slower` is of a run begun now to take longer than usual, None where nothing was learned. `usual_from_ns` is
    the first hour at which it is as usual again; None where it already is, or never within `hours`.
    """

    workload: str
    standing: Standing
    chance_slower: float | None
    usual_from_ns: int | None
    hours: tuple[Hour, ...]
    runs: int
    compared_runs: int
    newest_ended_ns: int
    changes: tuple[LevelChange, ...]


@dataclass(frozen=True)
class SystemWeather:
    """The weather of a system; `chosen` names the candidate that answers, None where too few runs are known."""

    system: str
    now_ns: int
    chosen: str | None
    candidates: tuple[Candidate, ...]
    compared_runs: int
    newest_ended_ns: int
    running_runs: int
    running_jobs: int
    workloads: tuple[WorkloadWeather, ...]
    warnings: tuple[str, ...]


def workload_weather(weather: Weather, lately: LatelyRun, now_ns: int, hours: int) -> WorkloadWeather:
    """The weather of one workload now and over so many whole hours."""
    next_whole = (now_ns // HOUR_NS + 1) * HOUR_NS
    times = np.concatenate([[now_ns], next_whole + HOUR_NS * np.arange(hours)]).astype(np.int64)
    prediction = weather.at(times, lately.workload, now_ns=now_ns)
    is_known = weather.model is not None
    shown = _hours(times, prediction, is_known=is_known)
    return WorkloadWeather(
        lately.workload,
        shown[0].standing,
        float(exceedance(prediction, 1.0)[0]) if is_known else None,
        _usual_from(shown),
        shown,
        *(lately.runs, lately.compared, lately.newest_ended_ns),
        tuple(change for change in lately.changes if change.since_ns >= now_ns - RECENT_NS),
    )


def candidates_of(weather: Weather) -> tuple[Candidate, ...]:
    """The backtest's figures, the best first; none where nothing was learned."""
    return tuple(_candidate(weather, score) for score in sorted(weather.scores, key=lambda score: score.loss))


def warnings_of(weather: Weather, newest_ended_ns: int, now_ns: int) -> tuple[str, ...]:
    """Return warnings on the limits of the forecast."""
    compared = 0 if weather.runs is None else len(weather.runs)
    warnings = []
    if weather.model is None:
        warnings.append(
            f"{compared} runs could be compared with earlier ones like them, {RUNS_MIN} are needed: the bands are a "
            "guess, wide and centred at the usual time"
        )
    if weather.chosen == Climate.name:
        warnings.append("no candidate predicted the past better than one band for every hour, so that band is given")
    if now_ns - newest_ended_ns > SILENT_NS:
        hours = (now_ns - newest_ended_ns) // HOUR_NS
        warnings.append(f"the newest completed run ended {hours} hours ago: of what came since nothing is known")
    return tuple(warnings)


def _hours(times: Times, prediction: Prediction, *, is_known: bool) -> tuple[Hour, ...]:
    rows = zip(times.tolist(), *(prediction.at(level).tolist() for level in (MEDIAN, LOW, HIGH)), strict=True)
    return tuple(
        Hour(at_ns, _standing(ratio) if is_known else Standing.UNKNOWN, ratio, low, high)
        for at_ns, ratio, low, high in rows
    )


def _standing(ratio: float) -> Standing:
    if ratio >= 1 + NOTICED:
        return Standing.SLOWER
    return Standing.FASTER if ratio <= 1 / (1 + NOTICED) else Standing.USUAL


def _usual_from(hours: Sequence[Hour]) -> int | None:
    if hours[0].standing is Standing.USUAL:
        return None
    return next((hour.at_ns for hour in hours if hour.standing is Standing.USUAL), None)


def _candidate(weather: Weather, score: Score) -> Candidate:
    by_horizon = tuple(map(HorizonSkill, weather.horizons_hours, score.skill_by_horizon))
    return Candidate(score.name, score.loss, score.skill, score.coverage_90, by_horizon)
