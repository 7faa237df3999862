"""The metrics that are stored, by name `set.column`."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crosswind.data.lake.lake import Lake
from crosswind.data.lake.retention.rolled_set import NODE, NOT_SAMPLED, RUN, TIME, sampled
from crosswind.data.schema.answers.series import StoredMetric
from crosswind.data.schema.errors import NotFoundError
from crosswind.data.schema.metric import Column, Kind

WITHIN_A_RUN = frozenset({"step", "sequence", "number"})  # keys that count on: no series is of one value of them


@dataclass(frozen=True)
class Metric:
    """One column of a set, and the columns that its series may be told apart by."""

    set_name: str
    column: Column
    keys: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name by which it is requested."""
        return f"{self.set_name}.{self.column.name}"

    @property
    def is_of_runs(self) -> bool:
        """Return whether its samples are of runs rather than of nodes."""
        return RUN in self.keys

    @property
    def is_counter(self) -> bool:
        """Return whether it grows, so that its growth is what counts."""
        return self.column.kind is Kind.COUNTER

    def described(self) -> StoredMetric:
        """Return it as it is listed."""
        of = "run" if self.is_of_runs else "node"
        by = tuple("run" if key == RUN else key for key in self.keys)
        column = self.column
        return StoredMetric(self.name, column.kind, column.unit, column.description, by, of)


def stored_metrics(lake: Lake) -> tuple[StoredMetric, ...]:
    """Return the metrics that samples are stored of, by name. Raises: MalformedError."""
    metrics = (metric.described() for name in lake.sets() for metric in _metrics_of(lake, name))
    return tuple(sorted(metrics, key=lambda metric: metric.name))


def metrics_named(lake: Lake, names: Sequence[str]) -> list[Metric]:
    """Return the metrics of these names. Raises: NotFoundError, which suggests the nearest name."""
    sets = lake.sets()
    asked = {name.partition(".")[0] for name in names}.intersection(sets)
    metrics = {metric.name: metric for set_name in asked for metric in _metrics_of(lake, set_name)}
    for name in names:
        if name not in metrics:
            raise _unknown(name, [metric.name for set_name in sets for metric in _metrics_of(lake, set_name)])
    return [metrics[name] for name in names]


def _unknown(name: str, stored: Sequence[str]) -> NotFoundError:
    near = difflib.get_close_matches(name, stored, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "/v1/metrics lists those that are"
    return NotFoundError(f"metric {name!r:.100} is not stored: {hint}")


def _metrics_of(lake: Lake, name: str) -> Iterator[Metric]:
    columns = {} if name in NOT_SAMPLED else lake.columns(name)
    keys = tuple(key for key, column in columns.items() if column.kind is Kind.KEY and key not in {TIME, *WITHIN_A_RUN})
    if TIME not in columns or not {NODE, RUN} & set(keys):
        return
    for column in sorted(sampled(columns), key=lambda column: column.name):
        yield Metric(name, column, keys)
