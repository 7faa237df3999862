"""Readings of power meters in the logs of SPEC's PTDaemon for MLPerf."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import Scalar, with_node_keys
from crosswind.ingest.collectors.sensor_set import SENSOR
from crosswind.ingest.reader.lines import numbered_lines, plain_head
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.telemetry.gpu_rows import NO_NODE
from crosswind.ingest.readers.telemetry.series_rows import CollectedRows

COLUMNS = {
    "Watts": "power_watts",
    "Volts": "voltage_volts",
    "Amps": "current_amperes",
    "PF": "reading_ratio",  # power factor
}
NUMBER = r"[+-]?[0-9]{1,15}(?:\.[0-9]{1,9})?|[+-]?nan"
LINE = re.compile(
    r"Time,(?P<month>[0-9]{2})-(?P<day>[0-9]{2})-(?P<year>[0-9]{4}) (?P<clock>[0-9:]{8})\.(?P<fraction>[0-9]{1,9})"
    + "".join(f",{name},(?P<{name}>{NUMBER})" for name in COLUMNS)
    + ",Mark,(?P<mark>.*)"
)
METER = "ptd"  # our name of the meter: the file has none


@dataclass(frozen=True)
class PtdPowerReader:
    """One row of the set `sensor` for every reading: watts, volts, amperes and, as its ratio, the power factor.

    Source: spl.txt among the examples of https://github.com/mlcommons/power-dev (ptd_client_server/logs_example)
    """

    name: ClassVar[str] = "ptd_power"
    description: ClassVar[str] = "power meter readings of PTDaemon: MLPerf's spl.txt (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the first line is such a reading."""
        return LINE.fullmatch(plain_head(head).split("\n", 1)[0].rstrip("\r")) is not None

    def read(self, path: Path, report: Report, context: Context) -> Iterator[pa.Table]:
        """Yield the rows in the file's order. Raises: UnavailableError."""
        reading = _Reading(context, Clock(context.zone), CollectedRows(with_node_keys(SENSOR), report))
        for number, text in numbered_lines(path, report):
            try:
                yield from reading.tables(text)
            except MalformedError as error:
                report.skip(number, text, str(error))
        yield from reading.rows.rest()
        reading.note(report)


@dataclass
class _Reading:
    """One pass over the lines."""

    context: Context
    clock: Clock
    rows: CollectedRows
    marks: Counter[str] = field(default_factory=Counter)

    def tables(self, text: str) -> Iterator[pa.Table]:
        """Yield the tables that a line completes. Raises: MalformedError."""
        match = LINE.fullmatch(text)
        if match is None:
            raise MalformedError(
                "no reading: expected Time,MM-DD-YYYY HH:MM:SS.mmm,Watts,..,Volts,..,Amps,..,PF,..,Mark,.."
            )
        local = f"{match['year']}-{match['month']}-{match['day']}T{match['clock']}"
        ts_ns = (self.clock.nanoseconds("Time", local) or 0) + int(match["fraction"].ljust(9, "0"))
        cells: dict[str, Scalar] = {
            column: float(match[name]) for name, column in COLUMNS.items() if not match[name].endswith("nan")
        }
        self.marks[match["mark"][:80]] += 1
        yield from self.rows.add({"ts_ns": ts_ns, "node": self.context.node or None, "device": METER, **cells})

    def note(self, report: Report) -> None:
        """Note what the rows lack."""
        report.notes += [f"{count} rows with the mark {mark!r}" for mark, count in self.marks.most_common(5)]
        if report.read and not self.context.node:
            report.notes.append(NO_NODE)
        report.notes += self.clock.notes()
