"""Traces of XLA's profiler (JAX, TensorFlow, PyTorch/XLA): `.xplane.pb`, plain or packed.

A rank is a device: planes of several devices in a file give several traces, each with the host's events of their one
process. Source: openxla/xla, third_party/tsl/tsl/profiler/protobuf/xplane.proto.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.trace import NONE, Kind, Place, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.binary import Bytes, plain_bytes
from crosswind.ingest.readers.protobuf import Message
from crosswind.ingest.readers.traces.rank_rows import RankRows
from crosswind.ingest.readers.traces.reader import WHOLE_LIMIT
from crosswind.ingest.readers.traces.xla_lines import kind_of_line
from crosswind.ingest.series.protobuf import BYTES, VARINT, fields, signed

PLANES, HOSTNAMES = 1, 4  # of XSpace
NAME, LINES, EVENT_NAMES, STAT_NAMES = 2, 3, 4, 5  # of XPlane
DEVICE = "/device:"


@dataclass(frozen=True)
class XplaneReader:
    """One file is a host."""

    name: ClassVar[str] = "xplane"
    version: ClassVar[int] = 1
    companions: ClassVar[tuple[str, ...]] = ()
    description: ClassVar[str] = "XLA's profile (.xplane.pb, also .gz, .zst)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether its name is one of profiles, or its first plane is one of theirs."""
        plain = plain_bytes(head)
        is_named = path.name.removesuffix(".gz").removesuffix(".zst").endswith(".xplane.pb")
        return plain.startswith(b"\n") and (is_named or b"/host:metadata" in plain[:200])

    def read(self, path: Path, report: Report) -> Iterator[RankTrace]:
        """Yield a trace for each device that worked, or of the host alone. Raises: MalformedError, UnavailableError."""
        with Bytes(path, report, limit=WHOLE_LIMIT) as stream:
            content = stream.take(WHOLE_LIMIT + 1)
        try:
            space = _Space(content)
        except MalformedError as error:
            raise MalformedError(f"{path}: {error}; expected an XSpace") from error
        yield from space.traces(path, report)


@dataclass(frozen=True)
class _Line:
    """The events of a line; times in ns."""

    kind: Kind
    place: Place
    begins: list[int]
    ends: list[int]
    names: list[str]
    correlations: list[int]

    def add_to(self, rows: RankRows) -> None:
        """Add them to a rank's."""
        places = [self.place] * len(self.names)
        rows.add(self.kind, (self.begins, self.ends), self.names, places, correlation=self.correlations)


class _Space:
    def __init__(self, content: bytes) -> None:
        space = Message.parsed(content)
        self._node = b", ".join(space.repeated(HOSTNAMES)).decode(errors="replace")[:200]
        self._devices: dict[str, list[_Line]] = {}
        self._host: list[_Line] = []
        for data in space.repeated(PLANES):
            plane = Message.parsed(data)
            name = plane.text(NAME)
            lines = [line for line in _lines(plane, name) if line.names]
            if not name.startswith(DEVICE):
                self._host += lines
            elif any(line.kind == Kind.KERNEL for line in lines):
                self._devices[name] = lines

    def traces(self, path: Path, report: Report) -> Iterator[RankTrace]:
        """Yield a trace for each device. Raises: MalformedError when there is nothing."""
        if not self._devices and not self._host:
            raise MalformedError(f"{path}: no events in any plane; expected a profile of XLA")
        for device, lines in (self._devices or {"": []}).items():
            rows = RankRows(str(path))
            for line in (*lines, *self._host):
                line.add_to(rows)
            report.read += rows.count
            notes = () if device else ("no device is in it: host only",)
            yield rows.trace(node=self._node, format="xplane", notes=notes)


def _lines(plane: Message, name: str) -> Iterator[_Line]:
    events, stats = _names(plane, EVENT_NAMES), _names(plane, STAT_NAMES)
    number = name.rpartition(":")[2]
    device = int(number) if name.startswith(DEVICE) and number.isdecimal() and len(number) < 9 else NONE
    correlation = next((key for key, text in stats.items() if text == "correlation_id"), NONE)
    for data in plane.repeated(LINES):
        line = Message.parsed(data)
        label = (line.text(11) or line.text(2))[:200]
        thread = line.whole(1)
        place = Place(label or f"line {thread}", device, thread if thread is not None and thread >= 0 else NONE)
        begin_ps = (line.whole(3) or 0) * 1000
        rows = [_event(event, correlation) for event in line.repeated(4)]
        begins = [begin_ps + offset for _, offset, _, _ in rows]
        yield _Line(
            kind_of_line(name, label),
            place,
            [begin // 1000 for begin in begins],
            [(begin + length) // 1000 for begin, (_, _, length, _) in zip(begins, rows, strict=True)],
            [events.get(key, f"event {key}") for key, *_ in rows],
            [linked for *_, linked in rows],
        )


def _names(plane: Message, number: int) -> Mapping[int, str]:
    """Return a map's names, each with its own number in its value."""
    names = {}
    for data in plane.repeated(number):
        value = Message.parsed(data).message(2)
        if value:
            names[value.whole(1) or 0] = value.text(2)[:1000]
    return names


def _event(data: bytes, correlation: int) -> tuple[int, int, int, int]:
    """Return an event's number of name, offset and duration in ps, and correlation id. Raises: MalformedError."""
    key = offset = length = 0
    linked = NONE
    for number, wire, value in fields(data):
        if wire == VARINT:
            if number == 1:
                key = signed(value)
            elif number == 2:
                offset = signed(value)
            elif number == 3:
                length = signed(value)
        elif number == 4 and wire == BYTES and isinstance(value, bytes):
            linked = _linked(value, correlation, linked)
    return key, offset, length, linked


def _linked(data: bytes, correlation: int, otherwise: int) -> int:
    """Return a statistic's value if it is the correlation id."""
    value = Message.parsed(data)
    if value.whole(1) != correlation:
        return otherwise
    for number in (3, 4):
        if (linked := value.whole(number)) is not None and linked >= 0:
            return linked
    return otherwise
