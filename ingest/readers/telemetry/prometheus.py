"""Samples in Prometheus' text format and OpenMetrics, one scrape or many in one file.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/, https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.reader.lines import blocks, changed_ns, plain_head
from crosswind.ingest.reader.reader import Context, Record, Report
from crosswind.ingest.series.known_series import KnownSeries
from crosswind.ingest.series.sample_lines import split
from crosswind.ingest.series.sample_values import LINE, NUMBER, samples_of
from crosswind.ingest.series.scrapes import Scrapes
from crosswind.ingest.series.series_text import PLAIN, parsed_series

KINDS = "counter|gauge|histogram|summary|untyped|unknown|info|stateset|gaugehistogram"
DECLARATION = re.compile(rf"# (?:(TYPE) {PLAIN} (?:{KINDS})|(?:HELP|UNIT) {PLAIN}(?: .*)?|EOF)\r?")
LOOKED_AT = 20


@dataclass(frozen=True)
class PrometheusReader:
    """Samples of series: those with a place in our sets go there, the others into the set `series`."""

    name: ClassVar[str] = "prometheus"
    description: ClassVar[str] = "Prometheus text format or OpenMetrics, one scrape or many"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the first lines are declarations and samples, at least one of them unmistakably."""
        lines = [line for line in plain_head(head).split("\n")[:-1] if line.strip()][:LOOKED_AT]
        declared = [match for line in lines if (match := DECLARATION.fullmatch(line))]
        samples = [line for line in lines if not line.startswith("#")]
        is_sure = (
            any(declaration[1] for declaration in declared)
            or any(declared and samples)
            or any("{" in line for line in samples)
        )
        return is_sure and all(map(_is_sample, samples))

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Record]:
        """Yield tables of our own sets, and of `series`. Raises: MalformedError, UnavailableError."""
        known_series = KnownSeries(context.node)
        scrapes = Scrapes(path, report, known_series, changed_ns(path))
        for block in blocks(path, report):
            comments, columns = split(block)
            cuts = scrapes.declare(comments)
            yield from scrapes.take(*samples_of(columns, known_series.code_of_text, report.skip), cuts)
        yield from scrapes.end()


def _is_sample(line: str) -> bool:
    match = LINE.fullmatch(line.rstrip("\r"))
    if match is None or NUMBER.fullmatch(match[3]) is None:
        return False
    try:
        parsed_series(match[1] or match[2])
    except MalformedError:
        return False
    return True
