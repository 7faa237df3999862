"""Stored metrics, and their course over time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from crosswind.data.schema.answers.fields import about, fill_texts, text_of
from crosswind.data.schema.metric import Kind
from crosswind.data.schema.series_question import Statistic


@dataclass(frozen=True)
class StoredMetric:
    """A metric that the store has samples of."""

    name: str = field(metadata=about("as series are requested: set.column"))
    kind: Kind
    unit: str = field(metadata=about("base unit; empty where nothing says"))
    description: str
    by: tuple[str, ...] = field(metadata=about("what its series may be of"))
    of: str = field(metadata=about("node or run: what its samples are taken of"))


@dataclass(frozen=True)
class MetricSeries:
    """One metric of one thing: a value a step, None where nothing was sampled."""

    metric: str
    statistic: Statistic
    unit: str
    labels: Mapping[str, str] = field(metadata=about("what it is of, such as node and device; empty: of all"))
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class RolledTime:
    """A time whose values are made of roll-ups, which have one row for the samples of so many seconds."""

    metric_set: str
    from_ns: int
    to_ns: int
    resolution_seconds: int


@dataclass(frozen=True)
class SeriesAnswer:
    """Series over one time, all with the same steps: value i is of the `step_seconds` from `from_ns` + i steps on."""

    from_ns: int = field(metadata=about("begin of the first step, a multiple of the step"))
    to_ns: int
    step_seconds: float
    series: tuple[MetricSeries, ...]
    left_out: int = field(metadata=about("series beyond the limit, the last by name"))
    aggregation: str = field(metadata=about("a sentence: how values were made of samples"))
    rolled: tuple[RolledTime, ...] = field(
        default=(), metadata=about("times of which there are roll-ups in place of samples: no percentiles then")
    )
    from_at: str | None = field(default=None, metadata=text_of("from_ns"))
    to_at: str | None = field(default=None, metadata=text_of("to_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)


@dataclass(frozen=True)
class SeriesPoint:
    """One step of one series, as a row of a table."""

    began_ns: int
    metric: str
    statistic: Statistic
    unit: str
    of: str = field(metadata=about("what it is of, as one text; empty: of all"))
    value: float | None
    began_at: str | None = field(default=None, metadata=text_of("began_ns"))

    def __post_init__(self) -> None:
        fill_texts(self)


def points(answer: SeriesAnswer) -> Iterator[SeriesPoint]:
    """Yield the values of series as rows of a table, series by series, in the order of time."""
    step_ns = round(answer.step_seconds * 1e9)
    for one in answer.series:
        of = " ".join(one.labels.values())
        for place, value in enumerate(one.values):
            yield SeriesPoint(answer.from_ns + place * step_ns, one.metric, one.statistic, one.unit, of, value)
