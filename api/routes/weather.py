"""Slowness of a system now, and in the next hours."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field, computed_field

from crosswind.api.stored import WeatherServiceOf
from crosswind.api.wire import Name, View, refuse_unknown_query, rfc3339
from crosswind.models.forecast.now import HOURS_MAX, Standing

router = APIRouter(prefix="/v1/weather", tags=["weather"], dependencies=[Depends(refuse_unknown_query)])


class WeatherQuery(BaseModel):
    """The system (null: that of most completed runs), workload (null: all of the last 28 days), and how far ahead."""

    system: Name | None = None
    workload: Name | None = None
    hours: Annotated[int, Field(ge=1, le=HOURS_MAX, description="whole hours to look ahead")] = HOURS_MAX


class HourView(View):
    """A run that begins then takes `ratio` times its usual time in the median; 90 % lie between low and high."""

    at_ns: int
    standing: Standing
    ratio: float
    low_ratio: float
    high_ratio: float

    @computed_field  # type: ignore[prop-decorator]
    @property
    def at(self) -> str | None:
        """As text."""
        return rfc3339(self.at_ns)


class HorizonSkillView(View):
    """Skill over the climate of what was told so many hours before."""

    hours: float
    skill: float


class CandidateView(View):
    """Score of a forecaster, asked again about the newer half of the runs from what was known then."""

    name: str
    loss: Annotated[float, Field(description="mean pinball loss of the log ratio")]
    skill: Annotated[float, Field(description="1 - loss / loss of the climate, the same band at every hour")]
    coverage_90: Annotated[float, Field(description="share in the 90 % band, before that was corrected by it")]
    by_horizon: tuple[HorizonSkillView, ...]


class LevelChangeView(View):
    """From this run on, runs took `ratio` times what those before it took, for good."""

    since_ns: int
    ratio: float
    runs_before: int
    runs_since: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def since_at(self) -> str | None:
        """As text."""
        return rfc3339(self.since_ns)


class WorkloadWeatherView(View):
    """One workload's slowdown; the first of `hours` is now. Unknown: too few runs, so that the band is a guess."""

    workload: str
    standing: Annotated[Standing, Field(description="of now; less than 5 % off the usual time is usual")]
    chance_slower: Annotated[float | None, Field(description="that a run begun now takes longer than usual")]
    usual_from_ns: Annotated[int | None, Field(description="the first hour at which it is as usual, if it is not now")]
    hours: tuple[HourView, ...]
    runs: Annotated[int, Field(description="completed ones that were looked at")]
    compared_runs: Annotated[int, Field(description="of them, those with enough earlier runs like them")]
    newest_ended_ns: int
    changes: tuple[LevelChangeView, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def usual_from_at(self) -> str | None:
        """As text."""
        return rfc3339(self.usual_from_ns)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def newest_ended_at(self) -> str | None:
        """As text."""
        return rfc3339(self.newest_ended_ns)


class WeatherView(View):
    """The weather of a system: who foretells it, what that was worth, and how each workload fares."""

    system: str
    now_ns: int
    chosen: Annotated[str | None, Field(description="the candidate that answers; null where too few runs are known")]
    candidates: tuple[CandidateView, ...]
    compared_runs: int
    newest_ended_ns: int
    running_runs: int
    running_jobs: Annotated[int, Field(description="as the scheduler was last heard of")]
    workloads: tuple[WorkloadWeatherView, ...]
    warnings: tuple[str, ...]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def now_at(self) -> str | None:
        """As text."""
        return rfc3339(self.now_ns)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def newest_ended_at(self) -> str | None:
        """As text."""
        return rfc3339(self.newest_ended_ns)


@router.get("")
def get_weather(asked: Annotated[WeatherQuery, Query()], weather: WeatherServiceOf) -> WeatherView:
    """The slowdown of each workload now and hour by hour, with 90 % bands; stores nothing."""
    return WeatherView.model_validate(weather.answer(asked.system, asked.workload, hours=asked.hours))
