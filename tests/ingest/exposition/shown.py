"""Rows that a sweep shows last, of recorded trees and of rows made by hand."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from crosswind.data.schema.metric import Column, MetricSet, Scalar, with_node_keys
from crosswind.ingest.agent.reading import InlineReader
from crosswind.ingest.collectors import SOURCES, made
from crosswind.ingest.collectors.source import Host, Options
from crosswind.ingest.exposition.latest import LatestReading
from crosswind.ingest.spool.segment import SweepRows


def of_sources(root: Path, names: Sequence[str]) -> dict[str, LatestReading]:
    """One reading of each of these sources."""
    latest = {}
    for source in SOURCES:
        if source.name in names:
            reader = InlineReader(source.name, made(source, Host(root), Options(source.name)))
            reading = reader.read()
            latest[source.name] = shown(reader.metric_set, reading.rows, reason=reading.reason)
    return latest


def shown(metric_set: MetricSet, rows: Sequence[Sequence[Scalar]], *, reason: str | None = None) -> LatestReading:
    """Rows as the sweep keeps them."""
    return LatestReading(SweepRows(with_node_keys(metric_set), 1, 1, "node-1", None, rows), 0.25, reason)


def made_up(rows: Mapping[str, Sequence[Scalar]], *columns: Column) -> dict[str, LatestReading]:
    """A set `made_up` of these columns, by device."""
    metric_set = MetricSet("made_up", "for tests", columns)
    return {"made_up": shown(metric_set, [(device, *values) for device, values in rows.items()])}
