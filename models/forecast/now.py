"""The weather as reported: each workload's slowdown now and in the next hours, and its evidence."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.data.schema.answers.weather import (
    ForecasterScore,
    HorizonSkill,
    HourForecast,
    LevelChange,
    Pace,
    WorkloadWeather,
)
from crosswind.data.schema.prediction import Prediction
from crosswind.models.forecast.backtest import RUNS_MIN, Score
from crosswind.models.forecast.level_changes import NOTICED
from crosswind.models.forecast.observations import HOUR_NS, Times
from crosswind.models.forecast.weather import Weather
from crosswind.models.forecast.weather_models import Climate
from crosswind.models.surrogate.exceedance import exceedance

RECENT_NS = 28 * 24 * HOUR_NS
SILENT_NS = 24 * HOUR_NS
LOW, MEDIAN, HIGH = 0.05, 0.5, 0.95


@dataclass(frozen=True)
class LatelyRun:
    """A workload's completed runs on the system, as far as known; `compared` had enough earlier runs like them."""

    workload: str
    runs: int
    compared: int
    newest_ended_ns: int
    changes: tuple[LevelChange, ...]


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


def candidates_of(weather: Weather) -> tuple[ForecasterScore, ...]:
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


def _hours(times: Times, prediction: Prediction, *, is_known: bool) -> tuple[HourForecast, ...]:
    rows = zip(times.tolist(), *(prediction.at(level).tolist() for level in (MEDIAN, LOW, HIGH)), strict=True)
    return tuple(
        HourForecast(at_ns, _standing(ratio) if is_known else Pace.UNKNOWN, ratio, low, high)
        for at_ns, ratio, low, high in rows
    )


def _standing(ratio: float) -> Pace:
    if ratio >= 1 + NOTICED:
        return Pace.SLOWER
    return Pace.FASTER if ratio <= 1 / (1 + NOTICED) else Pace.USUAL


def _usual_from(hours: Sequence[HourForecast]) -> int | None:
    if hours[0].standing is Pace.USUAL:
        return None
    return next((hour.at_ns for hour in hours if hour.standing is Pace.USUAL), None)


def _candidate(weather: Weather, score: Score) -> ForecasterScore:
    by_horizon = tuple(map(HorizonSkill, weather.horizons_hours, score.skill_by_horizon))
    return ForecasterScore(score.name, score.loss, score.skill, score.coverage_90, by_horizon)
