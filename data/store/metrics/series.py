"""Series of stored metrics: their values by step, of nodes, a job or runs."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import duckdb

from crosswind.data.lake.retention.rolled_set import RUN
from crosswind.data.schema.answers.series import MetricSeries, RolledTime, SeriesAnswer
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.series_question import SeriesQuestion, Statistic
from crosswind.data.store.metrics.aggregate import (
    PERCENTILES,
    Grouped,
    Groups,
    Wanted,
    default_statistics,
    read_groups,
)
from crosswind.data.store.metrics.samples import checked_counts, growth_of
from crosswind.data.store.metrics.selection import select
from crosswind.data.store.metrics.sources import Source, source_of
from crosswind.data.store.metrics.steps import Steps, coarse_seconds, steps_of
from crosswind.data.store.metrics.stored import Metric, metrics_named
from crosswind.data.store.store import Store

VALUES_MAX = 50_000  # of an answer; series beyond are left out
NAMES = {"run": RUN}  # keys by other names than their column's


@dataclass(frozen=True)
class _Asked:
    """A metric, the statistics that are wanted of it, and the keys that tell its series apart."""

    metric: Metric
    statistics: tuple[Statistic, ...]
    by: tuple[str, ...]


@dataclass(frozen=True)
class _Look:
    """One look at the samples that a question means, by set; at most `limit` series of a metric are kept."""

    sources: Mapping[str, Source]
    limit: int

    def gauge(self, connection: duckdb.DuckDBPyConnection, wanted: Wanted) -> Grouped:
        """Return the groups of a gauge."""
        samples = self.sources[wanted.metric.set_name].gauge(wanted.metric)
        return Grouped(*read_groups(connection, wanted, samples, self.limit))

    def counters(self, name: str, wanted: Sequence[Wanted], samples: Mapping[str, int]) -> dict[Metric, Grouped]:
        """Return the groups of counters of one set, which has so many samples by node or run."""
        grouped = {one.metric: Grouped() for one in wanted}
        for tables in growth_of(self.sources[name], list(grouped), samples) if grouped else ():
            for one in wanted:
                grouped[one.metric].add(one, tables[one.metric], self.limit)
        return grouped


def series(store: Store, question: SeriesQuestion, now_ns: int | None = None) -> SeriesAnswer:
    """Return the series of a question, as far as they may be seen, in the order of their metrics and names.

    Raises: NotFoundError for a metric, job or run that is not stored; InvalidInputError; MalformedError.
    """
    metrics = metrics_named(store.lake, list(dict.fromkeys(question.metrics)))
    asked = [_Asked(one, default_statistics(one, question.statistics), _by(one, question.by)) for one in metrics]
    selection = select(store, question, time.time_ns() if now_ns is None else now_ns)
    is_of_samples = any(PERCENTILES.intersection(one.statistics) for one in asked)
    coarse = None if is_of_samples else coarse_seconds(question, selection.span)

    def ask(connection: duckdb.DuckDBPyConnection) -> SeriesAnswer:
        sets = {one.metric.set_name: one.metric for one in asked}
        sources = {name: source_of(store.lake, one, selection, coarse) for name, one in sets.items()}
        counts = {name: checked_counts(connection, sources[name], one) for name, one in sets.items()}
        steps = steps_of(question, selection.span, max(one.apart_ns for one in counts.values()))
        wanted = [Wanted(**vars(one), steps=steps) for one in asked]
        look = _Look(sources, min(question.limit, max(1, VALUES_MAX // steps.count)))
        grouped = {one.metric: look.gauge(connection, one) for one in wanted if not one.metric.is_counter}
        for name, own in counts.items():
            counters = [one for one in wanted if one.metric.is_counter and one.metric.set_name == name]
            grouped |= look.counters(name, counters, own.samples)
        return _answer(wanted, grouped, steps, look)

    return store.lake.answer(ask)


def _answer(wanted: Sequence[Wanted], grouped: Mapping[Metric, Grouped], steps: Steps, look: _Look) -> SeriesAnswer:
    every = [one for of_metric in wanted for one in _series(of_metric, grouped[of_metric.metric].groups)]
    count = sum(grouped[one.metric].count * len(one.statistics) for one in wanted)
    kept = tuple(every[: look.limit])
    return SeriesAnswer(
        *(steps.begin_ns, steps.end_ns, steps.width_ns / 1e9, kept, count - len(kept)),
        aggregation=_sentence(steps),
        rolled=tuple(_rolled(look.sources)),
    )


def _rolled(sources: Mapping[str, Source]) -> Iterator[RolledTime]:
    """Yield the times of which roll-ups are the answer, set by set."""
    for name, source in sources.items():
        for (from_ns, to_ns), seconds in source.reading.of_rolled() if source.reading else ():
            yield RolledTime(name, from_ns, to_ns, seconds)


def _by(metric: Metric, asked: Sequence[str] | None) -> tuple[str, ...]:
    """Return the keys that tell series apart. Raises: InvalidInputError for one that the metric does not have."""
    if asked is None:
        return metric.keys
    wanted = {NAMES.get(name, name) for name in asked}
    if unknown := wanted.difference(metric.keys):
        keys = ", ".join(metric.described().by)
        raise InvalidInputError(f"by {min(unknown)!r:.80}: {metric.name} has no such key, expected some of {keys}")
    return tuple(key for key in metric.keys if key in wanted)


def _series(wanted: Wanted, groups: Groups) -> Iterator[MetricSeries]:
    names = ["run" if key == RUN else key for key in wanted.by]
    for key in sorted(groups, key=_in_order):
        labels = {name: value for name, value in zip(names, key, strict=True) if value}
        for statistic in wanted.statistics:
            values = groups[key].get(statistic, {})
            unit = _unit(wanted.metric, statistic)
            yield MetricSeries(
                wanted.metric.name, statistic, unit, labels, tuple(map(values.get, range(wanted.steps.count)))
            )


def _in_order(key: tuple[str, ...]) -> list[tuple[int, str]]:
    """Return the place of a name: numbers by their size."""
    return [(int(part) if part.isdigit() else -1, part) for part in key]


def _unit(metric: Metric, statistic: Statistic) -> str:
    unit = metric.column.unit
    return f"{unit}/s" if metric.is_counter and statistic is not Statistic.SUM else unit


def _sentence(steps: Steps) -> str:
    return (
        f"{steps.count} steps of {steps.width_ns / 1e9:g} s; each value is the statistic of the samples that its step "
        "holds, null where it holds none; growth of a counter counts in the step in which it was sampled"
    )
