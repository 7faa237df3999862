"""Samples in the output of nvidia-smi dmon."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import Scalar
from crosswind.ingest.reader.lines import plain_head
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.telemetry.gpu_rows import NUMBER, GpuRows, OtherValue, Place, raw
from crosswind.ingest.readers.telemetry.scrolled import scrolled_tables

# Columns of the same meaning in its manual and here. `sm`, `mem`, `pclk` and `fb` are close to others, not the same.
PLACES = {
    "pwr": Place("power_watts", "W", 1000),
    **dict.fromkeys(("temp", "gtemp"), Place("temperature_celsius", "C")),
    "mtemp": Place("memory_temperature_celsius", "C"),
    "mclk": Place("memory_clock_hertz", "MHz"),
}
TIMES = ("Date", "Time")
GROUPS = {*PLACES, "sm", "mem", "enc", "dec", "pclk", "pviol", "fb", "sbecc", "rxpci"}  # one at least of each -s
DATE = re.compile("([0-9]{4})([0-9]{2})([0-9]{2})")
NO_TIME = "rows without date and time; record with nvidia-smi dmon -o DT"


@dataclass(frozen=True)
class NvidiaDmonReader:
    """Power, temperatures and memory clock in the set `gpu`, other values in `series` with their units.

    Source: nvidia-smi(1), DEVICE MONITORING
    """

    name: ClassVar[str] = "nvidia_dmon"
    description: ClassVar[str] = "nvidia-smi dmon -o DT (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the first line names a GPU's columns, and the second their units."""
        lines = plain_head(head).split("\n")[:2]
        return len(lines) > 1 and _is_names(_words(lines[0])) and _is_units(_words(lines[1]))

    def read(self, path: Path, report: Report, context: Context) -> Iterator[pa.Table]:
        """Yield the rows in the file's order. Raises: MalformedError (no header, no times), UnavailableError."""
        reading = _Reading(path, report, Clock(context.zone), GpuRows(report, context, "nvidia-smi dmon"))
        return scrolled_tables(path, report, reading)


def _words(line: str) -> list[str]:
    """Return the columns of a line, which newer versions also separate by commas; of headings without their mark."""
    return line.replace(",", " ").replace("#", " ").split()


def _is_names(words: list[str]) -> bool:
    here = words.index("gpu") if "gpu" in words[:3] else -1
    return here >= 0 and set(words[:here]) <= set(TIMES) and bool(set(words[here:]) & GROUPS)


def _is_units(words: list[str]) -> bool:
    return "Idx" in words[:3]


@dataclass
class _Reading:
    """One pass over the lines."""

    path: Path
    report: Report
    clock: Clock
    rows: GpuRows
    names: list[str] = field(default_factory=list)
    units: list[str] = field(default_factory=list)

    def tables(self, number: int, text: str) -> Iterator[pa.Table]:
        """Yield the tables that a line completes. Raises: MalformedError."""
        words = _words(text)
        if text.lstrip().startswith("#"):
            self._turn_to(number, words)
            return
        if not self.names:
            raise MalformedError(f"{self.path}: line {number}: no header line such as # gpu pwr gtemp ...")
        if len(words) != len(self.names) or len(self.units) != len(self.names):
            raise MalformedError(f"{len(words)} fields; expected {len(self.names)}, each with its unit")
        readings = dict(zip(self.names, zip(words, self.units, strict=True), strict=True))
        ts_ns = self._time(readings.pop("Date")[0], readings.pop("Time")[0])
        index = raw(Place("index"), readings.pop("gpu")[0])
        cells: dict[str, Scalar] = {"index": index}
        others: list[OtherValue] = []
        for name, reading in readings.items():
            _take(name, reading, cells, others)
        yield from self.rows.add(ts_ns, f"gpu{index}", cells, others)

    def _turn_to(self, number: int, words: list[str]) -> None:
        if _is_names(words):
            if not set(TIMES) <= set(words):
                self.names = []
                raise MalformedError(f"{self.path}: line {number}: {NO_TIME}")
            if len(set(words)) < len(words):
                raise MalformedError("a column is repeated")
            self.names = words
        elif _is_units(words):
            self.units = words
        else:
            raise MalformedError("neither names nor units of columns")

    def _time(self, date: str, time: str) -> int:
        match = DATE.fullmatch(date)
        if match is None:
            raise MalformedError(f"date {date[:20]!r}; expected YYYYMMDD")
        return self.clock.nanoseconds("Time", f"{match[1]}-{match[2]}-{match[3]}T{time}") or 0


def _take(name: str, reading: tuple[str, str], cells: dict[str, Scalar], others: list[OtherValue]) -> None:
    """Sort a value with its unit in; `-` is none. Raises: MalformedError."""
    place, (value, unit) = PLACES.get(name), reading
    if value in ("-", "N/A"):
        return
    if not NUMBER.fullmatch(value):
        raise MalformedError(f"{name} {value[:40]!r} is no number")
    if place and place.unit == unit:
        cells[place.column] = raw(place, value)
    else:
        others.append(OtherValue(name, float(value), unit))
