"""The slowdown of a system now and in the next hours, and the rest of a run in progress."""

from dataclasses import dataclass, field
from enum import StrEnum

from crosswind.data.schema.answers.fields import about, fill_texts, text_of
from crosswind.data.schema.answers.predictions import Quantile


@dataclass(frozen=True)
class Remaining:
    """Quantiles of the seconds still to come, of those of all steps, and of the next step's; None after the last."""

    run_id: str
    steps_done: int
    total_steps: int
    seconds_done: float
    remaining: tuple[Quantile, ...]
    total: tuple[Quantile, ...]
    next_step: tuple[Quantile, ...] | None
    changed_at: tuple[int, ...] = field(metadata=about("steps at which the pace changed for good"))
    earlier_runs: int = field(metadata=about("of the workload on the system, that it is compared with"))
    cohort_runs: int = field(metadata=about("of them, of this configuration and scale"))


@dataclass(frozen=True)
class LevelChange:
    """From this run on, runs took `ratio` times what those before it took, for good."""

    since_ns: int
    ratio: float
    runs_before: int
    runs_since: int
    since_at: str | None = field(default=None, metadata=text_of("since_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)


class Pace(StrEnum):
    """The pace of a workload against its usual time; less than 5 % either way is usual."""

    SLOWER = "slower"
    USUAL = "usual"
    FASTER = "faster"
    UNKNOWN = "unknown"  # too few runs: its band is a guess


@dataclass(frozen=True)
class HourForecast:
    """A run that begins then takes `ratio` times its usual time in the median; 90 % lie between low and high."""

    at_ns: int
    standing: Pace
    ratio: float
    low_ratio: float
    high_ratio: float
    at: str | None = field(default=None, metadata=text_of("at_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)


@dataclass(frozen=True)
class HorizonSkill:
    """Skill over the climate of forecasts made so many hours before."""

    hours: float
    skill: float


@dataclass(frozen=True)
class ForecasterScore:
    """The backtest of a forecaster over the newer half of the runs, from what was known at each time."""

    name: str
    loss: float = field(metadata=about("mean pinball loss of the log ratio"))
    skill: float = field(metadata=about("1 - loss / loss of the climate, the same band at every hour"))
    coverage_90: float = field(metadata=about("share in the 90 % band, before that was corrected by it"))
    by_horizon: tuple[HorizonSkill, ...]


@dataclass(frozen=True)
class WorkloadWeather:
    """One workload's slowdown; the first of `hours` is now. Unknown: too few runs, so that the band is a guess."""

    workload: str
    standing: Pace = field(metadata=about("now; less than 5 % off the usual time is usual"))
    chance_slower: float | None = field(metadata=about("that a run begun now takes longer than usual"))
    usual_from_ns: int | None = field(metadata=about("the first hour at which it is usual again, if it is not now"))
    hours: tuple[HourForecast, ...]
    runs: int = field(metadata=about("completed ones that were read"))
    compared_runs: int = field(metadata=about("of them, those with enough earlier runs like them"))
    newest_ended_ns: int
    changes: tuple[LevelChange, ...]
    usual_from_at: str | None = field(default=None, metadata=text_of("usual_from_ns"))
    newest_ended_at: str | None = field(default=None, metadata=text_of("newest_ended_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)


@dataclass(frozen=True)
class SystemWeather:
    """The weather of a system: the forecaster that answers, its backtest, and each workload's slowdown."""

    system: str
    now_ns: int
    chosen: str | None = field(metadata=about("the forecaster that answers; null with too few runs"))
    candidates: tuple[ForecasterScore, ...]
    compared_runs: int
    newest_ended_ns: int
    running_runs: int
    running_jobs: int = field(metadata=about("by the scheduler's newest accounts"))
    workloads: tuple[WorkloadWeather, ...]
    warnings: tuple[str, ...]
    now_at: str | None = field(default=None, metadata=text_of("now_ns"))
    newest_ended_at: str | None = field(default=None, metadata=text_of("newest_ended_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)
