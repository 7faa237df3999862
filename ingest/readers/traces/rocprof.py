"""JSON of rocprofv3 (`--output-format json`): dispatches, copies, calls and markers of a process.

A rank is a process on a device. Source: ROCm/rocm-systems, rocprofiler-sdk: source/lib/output/generateJSON.cpp.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import msgspec

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.trace import NONE, Kind, Place, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.binary import Bytes, plain_bytes
from crosswind.ingest.readers.traces.rank_rows import RankRows
from crosswind.ingest.readers.traces.reader import WHOLE_LIMIT


class Handle(msgspec.Struct, gc=False):
    """An id."""

    handle: int = NONE


class Correlation(msgspec.Struct, gc=False):
    """Ids that connect a call with what it launched."""

    internal: int = NONE


class DispatchInfo(msgspec.Struct, gc=False):
    """The kernel of a dispatch, and the device on which it ran."""

    kernel_id: int = NONE
    agent_id: Handle = msgspec.field(default_factory=Handle)


class Record(msgspec.Struct, gc=False):
    """A dispatch, copy or call; times in ns."""

    start_timestamp: int
    end_timestamp: int
    kind: int = NONE
    operation: int = NONE
    thread_id: int = NONE
    bytes: int = NONE
    correlation_id: Correlation = msgspec.field(default_factory=Correlation)
    stream_id: Handle = msgspec.field(default_factory=Handle)
    dispatch_info: DispatchInfo = msgspec.field(default_factory=DispatchInfo)
    dst_agent_id: Handle = msgspec.field(default_factory=Handle)
    src_agent_id: Handle = msgspec.field(default_factory=Handle)


class Operations(msgspec.Struct):
    """The names of a kind of record, and of its operations."""

    kind: str = ""
    operations: list[str] = []  # msgspec copies it


class Marker(msgspec.Struct):
    """The text of a marker, by its correlation id."""

    key: int = NONE
    value: str = ""


class Strings(msgspec.Struct):
    """Names by number."""

    buffer_records: list[Operations] = []  # msgspec copies it
    marker_api: list[Marker] = []  # msgspec copies it


class Agent(msgspec.Struct):
    """A processor."""

    id: Handle = msgspec.field(default_factory=Handle)
    type: int = 0  # 2: a GPU
    logical_node_type_id: int = NONE  # its number among those of its type


class Symbol(msgspec.Struct, gc=False):
    """A kernel."""

    kernel_id: int
    formatted_kernel_name: str = ""
    kernel_name: str = ""


class Node(msgspec.Struct):
    """A host."""

    hostname: str = ""


class Metadata(msgspec.Struct):
    """The process."""

    pid: int = 0
    node: Node = msgspec.field(default_factory=Node)


class Records(msgspec.Struct):
    """The records that are read."""

    kernel_dispatch: list[Record] = []  # msgspec copies it
    memory_copy: list[Record] = []  # msgspec copies it
    hip_api: list[Record] = []  # msgspec copies it
    hsa_api: list[Record] = []  # msgspec copies it
    rccl_api: list[Record] = []  # msgspec copies it
    marker_api: list[Record] = []  # msgspec copies it


class Tool(msgspec.Struct):
    """The records of a process, by what they are of."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    agents: list[Agent] = []  # msgspec copies it
    strings: Strings = msgspec.field(default_factory=Strings)
    kernel_symbols: list[Symbol] = []  # msgspec copies it
    buffer_records: Records = msgspec.field(default_factory=Records)


class Document(msgspec.Struct):
    """A file."""

    tools: list[Tool] = msgspec.field(name="rocprofiler-sdk-tool")


KINDS = {
    "hip_api": Kind.CALL,
    "hsa_api": Kind.CALL,
    "rccl_api": Kind.ANNOTATION,
    "marker_api": Kind.ANNOTATION,
}


@dataclass(frozen=True)
class RocprofReader:
    """One file is a process, seldom several."""

    name: ClassVar[str] = "rocprof"
    version: ClassVar[int] = 1
    companions: ClassVar[tuple[str, ...]] = ()
    description: ClassVar[str] = "rocprofv3's JSON (also .gz, .zst)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the content says it
        """Return whether it begins as rocprofv3 writes it."""
        return b'"rocprofiler-sdk-tool"' in plain_bytes(head)[:200]

    def read(self, path: Path, report: Report) -> Iterator[RankTrace]:
        """Yield a trace for each process on each device. Raises: MalformedError, UnavailableError."""
        with Bytes(path, report, limit=WHOLE_LIMIT) as stream:
            content = stream.take(WHOLE_LIMIT + 1)
        try:
            tools = msgspec.json.decode(content, type=Document).tools
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedError(f"{path}: {error}; expected rocprofv3's JSON") from error
        for tool in tools:
            yield from _Process(tool, report, path).traces()


class _Process:
    def __init__(self, tool: Tool, report: Report, path: Path) -> None:
        self._tool, self._report, self._path = tool, report, path
        self._names = {
            symbol.kernel_id: symbol.formatted_kernel_name or symbol.kernel_name for symbol in tool.kernel_symbols
        }
        self._numbers = {agent.id.handle: agent.logical_node_type_id for agent in tool.agents if agent.type == 2}
        self._markers = {marker.key: marker.value for marker in tool.strings.marker_api}

    def traces(self) -> Iterator[RankTrace]:
        """Yield the trace of each device. Raises: MalformedError when there is nothing."""
        records = self._tool.buffer_records
        agents = {one.dispatch_info.agent_id.handle for one in records.kernel_dispatch}
        agents |= {self._agent(one) for one in records.memory_copy}
        if not agents and not any(getattr(records, name) for name in KINDS):
            raise MalformedError(f"{self._path}: process {self._tool.metadata.pid} has no dispatches, copies or calls")
        for agent in sorted(agents) or [NONE]:
            yield self._trace(agent)

    def _agent(self, copy: Record) -> int:
        target = copy.dst_agent_id.handle
        return target if target in self._numbers else copy.src_agent_id.handle

    def _trace(self, agent: int) -> RankTrace:
        rows, records = RankRows(str(self._path)), self._tool.buffer_records
        dispatches = [one for one in records.kernel_dispatch if one.dispatch_info.agent_id.handle == agent]
        kernels = [self._names.get(one.dispatch_info.kernel_id, "unknown kernel") for one in dispatches]
        _add(rows, Kind.KERNEL, dispatches, (kernels, self._streams(dispatches, agent)))
        copies = [one for one in records.memory_copy if self._agent(one) == agent]
        _add(rows, Kind.COPY, copies, ([self._operation(one) for one in copies], self._streams(copies, agent)))
        for name, kind in KINDS.items():
            calls = getattr(records, name)
            texts = [self._markers.get(one.correlation_id.internal) or self._operation(one) for one in calls]
            threads = [Place(f"thread {one.thread_id}", NONE, one.thread_id) for one in calls]
            _add(rows, kind, calls, (texts, threads))
        self._report.read += rows.count
        node = self._tool.metadata.node.hostname[:200]
        notes = () if records.hip_api else ("no calls of HIP are in it: launches cannot be seen",)
        return rows.trace(node=node, format="rocprof", notes=notes)

    def _streams(self, records: Sequence[Record], agent: int) -> list[Place]:
        device = self._numbers.get(agent, NONE)
        return [Place(f"stream {one.stream_id.handle}", device, one.stream_id.handle) for one in records]

    def _operation(self, one: Record) -> str:
        kinds = self._tool.strings.buffer_records
        operations = kinds[one.kind].operations if 0 <= one.kind < len(kinds) else []
        return operations[one.operation] if 0 <= one.operation < len(operations) else f"operation {one.operation}"


def _add(rows: RankRows, kind: Kind, records: Sequence[Record], named: tuple[list[str], list[Place]]) -> None:
    names, places = named
    edges = [one.start_timestamp for one in records], [one.end_timestamp for one in records]
    more = {"correlation": [one.correlation_id.internal for one in records], "bytes": [one.bytes for one in records]}
    rows.add(kind, edges, [name[:1000] for name in names], places, **more)
