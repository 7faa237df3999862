"""Power of nodes during MLPerf Training, from submissions' results."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import with_node_keys
from crosswind.ingest.collectors.sensor_set import SENSOR
from crosswind.ingest.reader.lines import numbered_lines, plain_head
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import EARLIEST_SECONDS, LATEST_SECONDS
from crosswind.ingest.readers.telemetry.gpu_rows import NO_NODE
from crosswind.ingest.readers.telemetry.node_name import is_node
from crosswind.ingest.readers.telemetry.series_rows import CollectedRows

MARK = ":::MLLOG "
READINGS = {"power_reading": "power", "interconnect_power_est": "interconnect"}  # and our name of the meter
NOTES = 10
EFFICIENCY = "conversion_eff"
OTHERS = ("power_measurement_start", "power_measurement_stop")
FIRST = re.compile(rf':::MLLOG {{.*"key": *"(?:{"|".join((*READINGS, EFFICIENCY, *OTHERS))})".*}}')
OF_A_NODE = re.compile(r"((?:node|sw)_[0-9]{1,6})\.txt(?:\.gz)?")


@dataclass(frozen=True)
class MlperfPowerReader:
    """One row of the set `sensor` for every reading, in watts; the node is the given host, or the file's name.

    Source: mlperf_logging/mllog/examples/power and result_summarizer.py in https://github.com/mlcommons/logging
    """

    name: ClassVar[str] = "mlperf_power"
    description: ClassVar[str] = "power readings of MLPerf Training: node_0.txt, sw_0.txt (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the first line is an event of a measurement of power."""
        return FIRST.match(plain_head(head).split("\n", 1)[0]) is not None

    def read(self, path: Path, report: Report, context: Context) -> Iterator[pa.Table]:
        """Yield the rows in the file's order. Raises: UnavailableError."""
        named = OF_A_NODE.fullmatch(path.name)
        node = context.node or (named[1] if named else "")
        reading = _Reading(node, CollectedRows(with_node_keys(SENSOR), report))
        for number, text in numbered_lines(path, report):
            try:
                yield from reading.tables(text)
            except MalformedError as error:
                report.skip(number, text, str(error))
        yield from reading.rows.rest()
        report.notes += reading.notes
        if report.read and reading.lacks_node:
            report.notes.append(NO_NODE)


@dataclass
class _Reading:
    """One pass over the lines."""

    node: str
    rows: CollectedRows
    notes: list[str] = field(default_factory=list)
    kind: str = ""  # AC or DC, if that is given
    lacks_node: bool = False

    def tables(self, text: str) -> Iterator[pa.Table]:
        """Yield the tables that a line completes. Raises: MalformedError."""
        event = _event(text)
        key, metadata = event.get("key"), event.get("metadata")
        if key == EFFICIENCY:
            measurement = metadata.get("measurement_type") if isinstance(metadata, dict) else None
            self.kind = measurement if measurement in ("AC", "DC") else ""
            note = f"readings are as given, not times the efficiency of conversion {event.get('value')!s:.20}"
            if note not in self.notes and len(self.notes) < NOTES:
                self.notes.append(note)
        if key not in READINGS:
            return
        watts = _watts(event.get("value"))
        if watts is None:
            raise MalformedError(f"{key}: {event.get('value')!s:.40} is no number of watts")
        node = self._node(metadata)
        self.lacks_node = self.lacks_node or not node
        device = f"{READINGS[key]} {self.kind}".rstrip()
        row = {
            "ts_ns": _time(event.get("time_ms")),
            "node": node or None,
            "device": device,
            "power_watts": watts,
        }
        yield from self.rows.add(row)

    def _node(self, metadata: object) -> str:
        host = metadata.get("host") if isinstance(metadata, dict) else None
        return str(host) if is_node(host) else self.node


def _event(text: str) -> dict[str, object]:
    try:
        event = json.loads(text.removeprefix(MARK)) if text.startswith(MARK) else None
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise MalformedError(f"no event: expected {MARK}{{...}}")
    return event


def _watts(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if isfinite(value) else None
    except OverflowError:  # JSON has numbers of any length
        return None


def _time(time_ms: object) -> int:
    if not isinstance(time_ms, int) or not EARLIEST_SECONDS * 1000 <= time_ms <= LATEST_SECONDS * 1000:
        raise MalformedError(f"time_ms {time_ms!s:.40} is not between 2001 and 2262")
    return time_ms * 1_000_000
