"""Chakra's execution traces, as Protocol Buffers (`.et`) and as JSON: nodes with durations and what they depend on.

Where no begins are stated, events begin as soon as what they depend on has ended, and their stream is free.
Source: mlcommons/chakra, schema/protobuf/et_def.proto.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.trace import NONE, Kind, Place, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.binary import Bytes, plain_bytes
from crosswind.ingest.readers.protobuf import Message
from crosswind.ingest.readers.traces.rank_rows import RankRows
from crosswind.ingest.readers.traces.reader import WHOLE_LIMIT
from crosswind.ingest.series.protobuf import varint

RANK = re.compile(r"\.(\d{1,7})\.(?:et|json)(?:\.gz|\.zst)?$")
LATEST_US = 1 << 51
METADATA, LOAD, STORE, COMPUTE, SEND, RECEIVE, COLLECTIVE = range(1, 8)  # types of nodes
HOST_KINDS = {LOAD: Kind.IO, STORE: Kind.IO, COMPUTE: Kind.OPERATOR}
DEVICE_KINDS = {LOAD: Kind.COPY, STORE: Kind.COPY, COMPUTE: Kind.KERNEL}
PLACES = {
    Kind.KERNEL: Place("compute", 0, 0),
    Kind.COLLECTIVE: Place("communication", 0, 1),
    Kind.COPY: Place("copies", 0, 2),
}
HOST = Place("host")


class Node(msgspec.Struct):
    """An operation; times in microseconds."""

    id: int = msgspec.field(name="Id")
    name: str = msgspec.field(default="", name="Name")
    type: int = msgspec.field(default=0, name="NodeType")
    begin_us: int | None = msgspec.field(default=None, name="start")
    length_us: int = msgspec.field(default=0, name="runtime")
    needs: list[int] = msgspec.field(default_factory=list, name="data_deps")
    is_cpu: bool = msgspec.field(default=False, name="is_cpu_op")
    bytes: int = msgspec.field(default=NONE, name="comm_size")

    @property
    def kind(self) -> Kind:
        """Return the kind of its event."""
        kinds, other = (HOST_KINDS, Kind.ANNOTATION) if self.is_cpu else (DEVICE_KINDS, Kind.COLLECTIVE)
        return kinds.get(self.type, other if self.type in (SEND, RECEIVE, COLLECTIVE) else Kind.IO)


class Graph(msgspec.Struct):
    """A trace in JSON."""

    workload_graph: list[Node]


@dataclass(frozen=True)
class ChakraReader:
    """One file is one rank."""

    name: ClassVar[str] = "chakra"
    version: ClassVar[int] = 1
    companions: ClassVar[tuple[str, ...]] = ()
    description: ClassVar[str] = "Chakra's execution trace (.et or JSON, also .gz, .zst)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether it is JSON with a graph, or its name and first message are of such a trace."""
        plain = plain_bytes(head)
        if plain.lstrip().startswith(b"{"):
            return b'"workload_graph"' in plain or b"-chakra." in plain[:400]
        return bool(re.search(r"\.et(\.gz|\.zst)?$", path.name)) and _begins_well(plain)

    def read(self, path: Path, report: Report) -> Iterator[RankTrace]:
        """Yield the rank. Raises: MalformedError, UnavailableError."""
        with Bytes(path, report, limit=WHOLE_LIMIT) as stream:
            content = stream.take(WHOLE_LIMIT + 1)
        try:
            nodes = _of_json(content) if content.lstrip().startswith(b"{") else list(_of_messages(content, report))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, MalformedError) as error:
            raise MalformedError(f"{path}: {error}; expected Chakra's execution trace") from error
        schedule = _Schedule({node.id: node for node in nodes if node.type > METADATA})
        rows = RankRows(str(path))
        notes = schedule.place(rows)
        if not rows.count or not any(node.length_us for node in nodes):
            raise MalformedError(f"{path}: no node has a duration; expected a trace that was linked with Kineto's")
        report.read += rows.count
        match = RANK.search(path.name)
        rank = int(match.group(1)) if match else None
        yield rows.trace(rank=rank, format="chakra", resolution_ns=1000, notes=tuple(notes))


@dataclass
class _Schedule:
    nodes: dict[int, Node]
    ends: dict[int, int] = field(default_factory=dict)  # us, by id
    free: dict[Place, int] = field(default_factory=dict)

    def place(self, rows: RankRows) -> list[str]:
        """Add all nodes to the rows, and return notes."""
        waiting = {key: sum(one in self.nodes for one in set(node.needs)) for key, node in self.nodes.items()}
        users: dict[int, list[int]] = {}
        for key, node in self.nodes.items():
            for one in set(node.needs):
                users.setdefault(one, []).append(key)
        ready = [key for key, count in waiting.items() if not count]
        for key in ready:  # which grows
            self._add(rows, self.nodes[key])
            for user in users.get(key, []):
                waiting[user] -= 1
                if not waiting[user]:
                    ready.append(user)
        lost, guessed = len(self.nodes) - len(ready), sum(node.begin_us is None for node in self.nodes.values())
        notes = {
            f"{lost} nodes depend on each other in a circle, and are left out": lost,
            f"{guessed} nodes have no begin: they begin when what they depend on has ended": guessed,
        }
        return [note for note, count in notes.items() if count]

    def _add(self, rows: RankRows, node: Node) -> None:
        place = PLACES.get(node.kind, HOST)
        begin = node.begin_us
        if begin is None:
            begin = max([self.free.get(place, 0), *(self.ends.get(one, 0) for one in node.needs)])
        end = begin + node.length_us
        if not 0 <= begin <= end < LATEST_US:
            raise MalformedError(f"{rows.source}: node {node.id}: begin {begin}, end {end}; expected microseconds")
        self.ends[node.id] = self.free[place] = end
        size = node.bytes if 0 <= node.bytes < 1 << 63 else NONE
        rows.add(node.kind, ([begin * 1000], [end * 1000]), [node.name[:1000]], [place], bytes=[size])


def _of_json(content: bytes) -> list[Node]:
    if b'"workload_graph"' not in content[:4096]:
        raise MalformedError("no workload_graph: an execution trace of PyTorch's observer, which has no durations")
    return msgspec.json.decode(content, type=Graph).workload_graph


def _begins_well(plain: bytes) -> bool:
    try:
        size, place = varint(plain, 0)
        return place + size <= len(plain) and set(Message.parsed(plain[place : place + size]).fields) <= {1, 2}
    except MalformedError:
        return False


def _of_messages(content: bytes, report: Report) -> Iterator[Node]:
    """Yield nodes; the first message is metadata. Raises: MalformedError."""
    place, is_first = 0, True
    while place < len(content):
        size, place = varint(content, place)
        if place + size > len(content):
            report.break_off(f"the last message lacks {place + size - len(content)} bytes")
            return
        if not is_first:
            yield _node(Message.parsed(content[place : place + size]))
        place, is_first = place + size, False


def _node(message: Message) -> Node:
    values: dict[str, Any] = {}
    for data in message.repeated(10):
        attribute = Message.parsed(data)
        values[attribute.text(1)] = next(
            (attribute.whole(number) for number in (27, 7, 9, 11, 13) if number in attribute.fields), None
        )
    return Node(
        message.whole(1) or 0,
        message.text(2),
        message.whole(3) or 0,
        message.whole(6),
        message.whole(7) or 0,
        _numbers(message, 5),
        bool(values.get("is_cpu_op")),
        values.get("comm_size") or NONE,
    )


def _numbers(message: Message, number: int) -> list[int]:
    """Return a repeated field's whole numbers, packed or not."""
    numbers: list[int] = []
    for value in message.fields.get(number, []):
        if isinstance(value, int):
            numbers.append(value)
            continue
        place = 0
        while place < len(value):
            one, place = varint(value, place)
            numbers.append(one)
    return numbers
