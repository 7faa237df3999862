"""Samples of GPUs in the CSV output of nvidia-smi's queries."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import Scalar
from crosswind.ingest.reader.lines import numbered_lines, plain_head
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.telemetry.gpu_rows import MIB, NUMBER, GpuRows, OtherValue, Place, raw

MILLI = 1000
PLACES = {
    "power.draw": Place("power_watts", "W", MILLI),
    "power.draw.instant": Place("instant_power_watts", "W", MILLI),
    "enforced.power.limit": Place("power_limit_watts", "W", MILLI),
    "utilization.gpu": Place("utilization_ratio", "%"),
    "utilization.memory": Place("memory_utilization_ratio", "%"),
    "memory.total": Place("memory_total_bytes", "MiB", MIB),
    "memory.reserved": Place("memory_reserved_bytes", "MiB", MIB),
    "memory.used": Place("memory_used_bytes", "MiB", MIB),
    "memory.free": Place("memory_free_bytes", "MiB", MIB),
    "temperature.gpu": Place("temperature_celsius"),
    "temperature.memory": Place("memory_temperature_celsius"),
    **dict.fromkeys(("clocks.current.graphics", "clocks.gr"), Place("graphics_clock_hertz", "MHz")),
    **dict.fromkeys(("clocks.current.sm", "clocks.sm"), Place("sm_clock_hertz", "MHz")),
    **dict.fromkeys(("clocks.current.memory", "clocks.mem"), Place("memory_clock_hertz", "MHz")),
    "fan.speed": Place("fan_speed_ratio", "%"),
    "ecc.errors.corrected.volatile.total": Place("ecc_corrected_total"),
    "ecc.errors.uncorrected.volatile.total": Place("ecc_uncorrected_total"),
    "ecc.errors.corrected.aggregate.total": Place("ecc_corrected_lifetime_total"),
    "ecc.errors.uncorrected.aggregate.total": Place("ecc_uncorrected_lifetime_total"),
    "index": Place("index"),
}
FACTS = {
    **dict.fromkeys(("name", "gpu_name"), "name"),
    **dict.fromkeys(("pci.bus_id", "gpu_bus_id"), "pci_bus_id"),
    "driver_version": "driver_version",
}
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
UUIDS = ("uuid", "gpu_uuid")
KNOWN = {*PLACES, *FACTS, *REASONS, *UUIDS, "timestamp", "pstate"}
NAME = re.compile(r"([a-z][A-Za-z0-9_.]*)(?: \[([^\[\]]{1,12})\])?")
TIME = re.compile(r"([0-9]{4})/([0-9]{2})/([0-9]{2}) ([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,9}))?")
MISSING = re.compile(r"|N/A|\[[^\]]*\]")  # [N/A], [Not Supported], [GPU requires reset], ...


@dataclass(frozen=True)
class NvidiaSmiReader:
    """One row of the set `gpu` for every GPU and instant; values without a column there go to `series`.

    Source: nvidia-smi(1), nvidia-smi --help-query-gpu
    """

    name: ClassVar[str] = "nvidia_smi"
    description: ClassVar[str] = "nvidia-smi --query-gpu=timestamp,... --format=csv (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the first line has several of nvidia-smi's names of a GPU's values."""
        return header_of(plain_head(head).split("\n", 1)[0]) is not None

    def read(self, path: Path, report: Report, context: Context) -> Iterator[pa.Table]:
        """Yield the rows in the file's order. Raises: MalformedError (no header, no timestamp), UnavailableError."""
        reading = _Reading(path, report, Clock(context.zone), GpuRows(report, context, "nvidia-smi"))
        for number, text in numbered_lines(path, report):
            yield from reading.tables(number, text)
        yield from reading.rest()


@dataclass(frozen=True)
class Heading:
    """One column: its name and its unit."""

    name: str
    unit: str


def header_of(line: str) -> list[Heading] | None:
    """Return the columns that a line names; None if it is no header of nvidia-smi."""
    matches = [NAME.fullmatch(cell.strip()) for cell in line.split(",")]
    headings = [Heading(match[1], match[2] or "") for match in matches if match]
    names = {heading.name for heading in headings} & KNOWN
    is_header = len(headings) == len(matches) and len(names) > 1 and any("." in name for name in names)
    return headings if is_header else None


@dataclass
class _Reading:
    """One pass over the lines."""

    path: Path
    report: Report
    clock: Clock
    rows: GpuRows
    headings: list[Heading] = field(default_factory=list)
    texts: set[str] = field(default_factory=set)  # columns that hold no numbers

    def tables(self, number: int, text: str) -> Iterator[pa.Table]:
        """Yield the tables that a line and those before it complete."""
        if text[:1].isalpha() and (header := header_of(text)):
            if "timestamp" not in {heading.name for heading in header}:
                raise MalformedError(f"{self.path}: line {number}: no timestamp; ask for --query-gpu=timestamp,...")
            self.headings = header
        elif not self.headings:
            raise MalformedError(f"{self.path}: line {number}: no header; leave noheader out of --format=csv")
        else:
            try:
                yield from self._row([cell.strip() for cell in text.split(",")])
            except MalformedError as error:
                self.report.skip(number, text, str(error))

    def _row(self, texts: list[str]) -> Iterator[pa.Table]:
        if len(texts) != len(self.headings):
            raise MalformedError(f"{len(texts)} fields; expected {len(self.headings)}")
        readings = {heading.name: (heading, text) for heading, text in zip(self.headings, texts, strict=True)}
        ts_ns = self._time(readings.pop("timestamp")[1])
        cells: dict[str, Scalar] = {}
        others: list[OtherValue] = []
        for heading, text in readings.values():
            if not MISSING.fullmatch(text):
                self._take(heading, text, cells, others)
        return self.rows.add(ts_ns, _device(readings), cells, others)

    def _take(self, heading: Heading, text: str, cells: dict[str, Scalar], others: list[OtherValue]) -> None:
        """Sort a value in. Raises: MalformedError."""
        name, place = heading.name, PLACES.get(heading.name)
        number = text.removesuffix(f" {heading.unit}") if heading.unit else text
        if name in FACTS:
            cells[FACTS[name]] = text[:200]
        elif name in REASONS:
            cells["clocks_event_reasons"] = _bits(text)
        elif name == "pstate":
            cells["performance_state"] = raw(Place("performance_state"), text.removeprefix("P"))
        elif place and place.unit == heading.unit:
            cells[place.column] = _named(name, place, number)
        elif NUMBER.fullmatch(number):
            others.append(OtherValue(name, float(number), heading.unit))
        elif name not in UUIDS:
            self.texts.add(name)

    def _time(self, text: str) -> int:
        match = TIME.fullmatch(text)
        if match is None:
            raise MalformedError(f"timestamp {text[:40]!r} is no time; expected YYYY/MM/DD HH:MM:SS.mmm")
        year, month, day, rest, fraction = match.groups()
        seconds = self.clock.nanoseconds("timestamp", f"{year}-{month}-{day}T{rest}") or 0
        return seconds + int((fraction or "").ljust(9, "0"))

    def rest(self) -> Iterator[pa.Table]:
        """Yield the last rows, and note remarks on all."""
        yield from self.rows.rest()
        self.rows.note()
        self.report.notes += self.clock.notes()
        if self.texts:
            self.report.notes.append(f"columns without numbers are left out: {', '.join(sorted(self.texts))[:300]}")


def _device(readings: dict[str, tuple[Heading, str]]) -> str:
    """Return the GPU's UUID, or else its slot, or else its number; empty if there is none of them."""
    for name in (*UUIDS, "pci.bus_id", "gpu_bus_id", "index"):
        text = readings.get(name, (None, ""))[1]
        if text and not MISSING.fullmatch(text):
            return f"gpu{text}"[:200] if name == "index" else text[:200]
    return ""


def _named(name: str, place: Place, number: str) -> int:
    try:
        return raw(place, number)
    except MalformedError as error:
        raise MalformedError(f"{name}: {error}") from error


def _bits(text: str) -> int:
    if not re.fullmatch("0x[0-9a-fA-F]{1,16}", text):
        raise MalformedError(f"reasons {text[:40]!r} are no hexadecimal number")
    return int(text, 16)
