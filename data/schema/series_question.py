"""A question for series: stored metrics over time, of nodes, a job or runs."""

from dataclasses import dataclass
from enum import StrEnum

from crosswind.data.schema.errors import InvalidInputError

METRICS_MAX, STATISTICS_MAX, NODES_MAX, RUNS_MAX, DEVICES_MAX = 20, 4, 1000, 100, 100
POINTS, BUCKETS_MAX = 500, 10_000  # of a series
SERIES, SERIES_MAX = 100, 1000
STEP_LEAST = 1e-6  # seconds
_MOST = (("metrics", METRICS_MAX), ("statistics", STATISTICS_MAX), ("nodes", NODES_MAX), ("devices", DEVICES_MAX))


class Statistic(StrEnum):
    """A statistic of the samples in one step of a series.

    `rate` is the growth of counters a second, summed over the devices of a series. `sum` is the growth of counters, and
    of gauges the sum of the devices' means. The others are of all samples, of counters of their growth a second from
    one sample to the next.
    """

    MEAN = "mean"
    MIN = "min"
    MAX = "max"
    SUM = "sum"
    P50 = "p50"
    P95 = "p95"
    P99 = "p99"
    RATE = "rate"


@dataclass(frozen=True)
class SeriesQuestion:
    """Metrics by name (`set.column`), of nodes, a job or runs, over a time; None or empty: see below.

    Without nodes, job or runs: of every node. Times are ns UTC; without them, those of the job or runs, else the last
    hour. Without statistics: the rate of counters, the mean of gauges. Without a step: so that there are `points` at
    most. `by` names what each series is of (`node`, `device`, `rank`); None: every device or rank. `devices` are those
    of nodes that are wanted; empty: all.
    Raises: InvalidInputError naming the field.
    """

    metrics: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    job: str | None = None
    system: str | None = None
    runs: tuple[str, ...] = ()
    from_ns: int | None = None
    to_ns: int | None = None
    step_seconds: float | None = None
    statistics: tuple[Statistic, ...] = ()
    by: tuple[str, ...] | None = None
    points: int = POINTS
    limit: int = SERIES
    devices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field, most in _MOST:
            _check_count(field, getattr(self, field), most)
        _check_count("runs", self.runs, RUNS_MAX)
        if not self.metrics:
            raise InvalidInputError("metric: expected the name of one at least, such as cpu.user_seconds_total")
        _check_between("points", self.points, BUCKETS_MAX)
        _check_between("limit", self.limit, SERIES_MAX)
        if self.step_seconds is not None and not STEP_LEAST <= self.step_seconds < float("inf"):
            raise InvalidInputError(f"step {self.step_seconds!r}: expected {STEP_LEAST} seconds or more")
        if self.job is not None and self.runs:
            raise InvalidInputError(f"job {self.job!r:.80}, run {self.runs[0]!r:.80}: expected one of the two")


def _check_count(field: str, values: tuple[str, ...], most: int) -> None:
    if len(values) > most:
        raise InvalidInputError(f"{field}: {len(values)} of them, expected {most} at most")


def _check_between(field: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise InvalidInputError(f"{field} {value!r}: expected 1 to {most}")
