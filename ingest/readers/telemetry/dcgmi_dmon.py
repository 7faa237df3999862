"""Samples in the output of dcgmi dmon, with a time at the beginning of each line."""

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

# DCGM's fields that are NVML's numbers, by the names of dcgmi's columns.
PLACES = {
    "TMPTR": Place("temperature_celsius", "C"),
    "MMTMP": Place("memory_temperature_celsius", "C"),
    "SMCLK": Place("sm_clock_hertz", "MHz"),
    "MMCLK": Place("memory_clock_hertz", "MHz"),
    "TOTEC": Place("energy_joules_total", "mJ"),
    "RPCTR": Place("pcie_replays_total"),
}
UNITS = {
    "POWER": "W",
    **dict.fromkeys(("FBTTL", "FBFRE", "FBUSD"), "MB"),
    **dict.fromkeys(("GRACT", "SMACT", "SMOCC", "TENSO", "DRAMA", "FP64A", "FP32A", "FP16A"), "ratio"),
}
HEADER = re.compile(r"(?P<time>[^#]*+)#\s*+Entity(?P<names>(?:\s++[A-Z][A-Z0-9#_]++)++)")
LONGEST_HEADER = 8192  # characters; DCGM has some hundred columns
TIME = re.compile(
    r"(?P<whole>[0-9]{9,12}|[0-9-]{10}[T ][0-9:]{8})(?:\.(?P<fraction>[0-9]{1,9}))?(?P<zone>Z|[+-][0-9:]{4,6})?"
)
IDS = {"ID", "Id"}
SECOND = {*IDS, "GPU"}
ENTITY = re.compile("[A-Za-z][A-Za-z_-]{1,20}")
MISSING = ("N/A", "-")
NO_TIME = "dcgmi dmon writes no times; record with dcgmi dmon -e ... | ts '%FT%H:%M:%.S%z' (of moreutils)"


@dataclass(frozen=True)
class DcgmiDmonReader:
    """Temperatures, clocks and energy of GPUs in the set `gpu`; other values and entities in `series`.

    Source: dcgmi-dmon(8), dcgm_fields.cpp and dcgm_fields.h of DCGM; ts(1)
    """

    name: ClassVar[str] = "dcgmi_dmon"
    description: ClassVar[str] = "dcgmi dmon -e ..., each line with its time in front (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the first line names columns of DCGM's entities, and the second is below it, or a GPU's."""
        first, *others = plain_head(head).split("\n", 2)
        is_below = len(others) < 2 or not SECOND.isdisjoint(others[0].split())  # the second line may not be whole yet
        return _header(first) is not None and is_below

    def read(self, path: Path, report: Report, context: Context) -> Iterator[pa.Table]:
        """Yield the rows in the file's order. Raises: MalformedError (no header, no times), UnavailableError."""
        reading = _Reading(path, Clock(context.zone), GpuRows(report, context, "dcgmi dmon"))
        return scrolled_tables(path, report, reading)


@dataclass
class _Reading:
    """One pass over the lines."""

    path: Path
    clock: Clock
    rows: GpuRows
    names: list[str] = field(default_factory=list)

    def tables(self, number: int, text: str) -> Iterator[pa.Table]:
        """Yield the tables that a line completes. Raises: MalformedError."""
        if header := _header(text):
            if not header["time"].strip():
                self.names = []
                raise MalformedError(f"{self.path}: line {number}: {NO_TIME}")
            self.names = header["names"].split()
            return
        words = text.split()
        if not self.names:
            raise MalformedError(f"{self.path}: line {number}: no header line such as #Entity GPUTL POWER")
        if IDS & set(words[:3]):  # the second line of the header
            return
        first = len(words) - len(self.names)
        if first < 3 or not ENTITY.fullmatch(words[first - 2]):
            raise MalformedError(
                f"{len(words)} words; expected a time, an entity, its number and {len(self.names)} values"
            )
        ts_ns = self._time(" ".join(words[: first - 2]))
        kind, index = words[first - 2 : first]
        values = {name: value for name, value in zip(self.names, words[first:], strict=True) if value not in MISSING}
        cells, others = _sorted(values, is_gpu=kind == "GPU")
        if kind == "GPU":
            cells["index"] = raw(Place("index"), index)
        yield from self.rows.add(ts_ns, f"gpu{index}" if kind == "GPU" else f"{kind} {index}"[:200], cells, others)

    def _time(self, text: str) -> int:
        match = TIME.fullmatch(text)
        if match is None:
            raise MalformedError(f"time {text[:40]!r}; expected seconds since 1970 or YYYY-MM-DDTHH:MM:SS")
        seconds = self.clock.nanoseconds("time", match["whole"].replace(" ", "T") + (match["zone"] or "")) or 0
        return seconds + int((match["fraction"] or "").ljust(9, "0"))


def _header(text: str) -> re.Match[str] | None:
    text = text.strip()
    return HEADER.fullmatch(text) if len(text) <= LONGEST_HEADER else None


def _sorted(values: dict[str, str], *, is_gpu: bool) -> tuple[dict[str, Scalar], list[OtherValue]]:
    """Return columns of the set `gpu`, and all other numbers. Raises: MalformedError."""
    cells: dict[str, Scalar] = {}
    others: list[OtherValue] = []
    for name, value in values.items():
        if not NUMBER.fullmatch(value):
            raise MalformedError(f"{name} {value[:40]!r} is no number")
        place = PLACES.get(name)
        if place and is_gpu:
            cells[place.column] = raw(place, value)
        else:
            others.append(OtherValue(name, float(value), place.unit if place else UNITS.get(name, "")))
    return cells, others
