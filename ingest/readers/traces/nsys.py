"""Nsight Systems' export to SQLite (`nsys export --type sqlite`), schema 3.x, plain or packed.

A rank is a process on a device: a file of a node gives several. Payloads of NVTX are read where the export has them as
JSON. Source: the export itself, whose tables carry comments; NVIDIA, "Nsight Systems User Guide", SQLite Schema.
"""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.trace import NONE, Group, Kind, Place, RankTrace
from crosswind.ingest.reader.lines import GZIP_MAGIC
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.binary import ZSTD_MAGIC, plain_bytes
from crosswind.ingest.readers.sqlite_file import MAGIC, columns_of, has_tables, opened, tables_of
from crosswind.ingest.readers.traces.rank_rows import RankRows
from crosswind.ingest.readers.traces.reader import LIMIT
from crosswind.ingest.readers.traces.sqlite_columns import columns, pairs, whole

PROCESS, THREAD = ~0xFFFFFF, 0xFFFFFF  # parts of a global id
TORCH_RANGE = re.compile(r", (?:op_id = (\d{1,18})\b|op_id = \d+|seq = |sizes = |input_op_ids = ).*", re.DOTALL)
COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
RANGES = (59, 60, 70, 71)  # NvtxPushPopRange, NvtxStartEndRange, and those with payload


@dataclass(frozen=True)
class Table:
    """A table of events, and the expressions that give their name and size; `{}` in the name is the number `label`."""

    name: str
    kind: Kind
    label: str
    is_named: bool = True  # the label is an id of a string
    size: str = ""

    @property
    def is_of_device(self) -> bool:
        """Return whether its rows lie on streams, and not threads."""
        return self.kind.is_device or self.name.endswith("SYNCHRONIZATION")


TABLES = (
    Table("CUPTI_ACTIVITY_KIND_KERNEL", Kind.KERNEL, "demangledName"),
    Table("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", Kind.KERNEL, "graphId", is_named=False),
    Table("CUPTI_ACTIVITY_KIND_MEMCPY", Kind.COPY, "copyKind", is_named=False, size="bytes"),
    Table("CUPTI_ACTIVITY_KIND_MEMSET", Kind.COPY, "", is_named=False, size="bytes"),
    Table("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", Kind.SYNC, "syncType", is_named=False),
    Table("CUPTI_ACTIVITY_KIND_RUNTIME", Kind.CALL, "nameId"),
    Table("OSRT_API", Kind.FRAME, "nameId"),
    Table("MPI_COLLECTIVES_EVENTS", Kind.MESSAGE, "textId"),
    Table("MPI_P2P_EVENTS", Kind.MESSAGE, "textId"),
    Table("MPI_START_WAIT_EVENTS", Kind.MESSAGE, "textId"),
)
LABELS = {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "CUDA graph {}", "CUPTI_ACTIVITY_KIND_MEMSET": "Memset"}
SYNCS = {1: "event synchronization", 2: "stream waits for event", 3: "stream synchronization"}


@dataclass(frozen=True)
class NsysReader:
    """One file is a node, or what of it was profiled together."""

    name: ClassVar[str] = "nsys"
    version: ClassVar[int] = 1
    companions: ClassVar[tuple[str, ...]] = ()
    description: ClassVar[str] = "an SQLite export of Nsight Systems (also .gz, .zst)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether it is an SQLite file with Nsight Systems' tables."""
        plain = plain_bytes(head)
        if not plain.startswith(MAGIC):
            return False
        if b"StringIds" in plain and b"GlobalId" in plain:
            return True
        is_packed = head.startswith((GZIP_MAGIC, ZSTD_MAGIC))
        return not is_packed and has_tables(path, head, ["StringIds", "TARGET_INFO_SYSTEM_ENV"])

    def read(self, path: Path, report: Report) -> Iterator[RankTrace]:
        """Yield a trace for each process on each device; of processes without one, where no device worked.

        Raises: MalformedError, UnavailableError.
        """
        with opened(path, report, ["StringIds"], packed_limit=LIMIT) as database:
            export = _Export(database, report)
            ranks = export.ranks()
            if not ranks:
                raise MalformedError(f"{path}: no kernels, copies, calls or NVTX ranges; expected a trace of CUDA")
            for process, device in ranks:
                yield export.trace(path, process, device)


class _Export:
    def __init__(self, database: sqlite3.Connection, report: Report) -> None:
        self._database, self._report = database, report
        there = tables_of(database)
        self._tables = [(table, columns_of(database, table.name)) for table in TABLES if table.name in there]
        self._nvtx = columns_of(database, "NVTX_EVENTS") if "NVTX_EVENTS" in there else set()
        self._strings = {key: str(text)[:1000] for key, text in pairs(database, "StringIds", "id", "value").items()}
        self._threads = pairs(database, "ThreadNames", "globalTid", "nameId")
        self._base_ns = self._begin_ns(there)

    def ranks(self) -> list[tuple[int, int]]:
        """Return processes and devices; the device is NONE where none worked."""
        ranks: set[tuple[int, int]] = set()
        for table, there in self._tables:
            if table.kind.is_device and {"deviceId", "start", "end"} <= there:
                ranks |= self._distinct(table.name, [whole("globalPid", there), whole("deviceId")])
        return sorted(ranks or {(process, NONE) for process in self._host_processes()})

    def _host_processes(self) -> set[int]:
        """Return processes with calls, messages or ranges."""
        tables = [table.name for table, there in self._tables if "globalTid" in there]
        tables += ["NVTX_EVENTS"] if "globalTid" in self._nvtx else []
        return {
            process for name in tables for (process,) in self._distinct(name, [f"{whole('globalTid')} & {PROCESS}"])
        }

    def _distinct(self, table: str, expressions: list[str]) -> set[Any]:
        blocks = columns(self._database, table, expressions, where=f"true group by {', '.join(expressions)}")
        return {row for block in blocks for row in zip(*block, strict=True)}

    def trace(self, path: Path, process: int, device: int) -> RankTrace:
        """Return the events of a process: its own, and those of one device."""
        rows = RankRows(str(path), base_ns=self._base_ns)
        for table, there in self._tables:
            if {"start", "end", "deviceId" if table.is_of_device else "globalTid"} <= there:
                self._add(rows, table, there, (process, device))
        if {"start", "end", "globalTid", "eventType"} <= self._nvtx:
            self._add_ranges(rows, process)
        self._report.read += rows.count
        node = self._node()
        return rows.trace(node=node, format="nsys")

    def _add(self, rows: RankRows, table: Table, there: set[str], rank: tuple[int, int]) -> None:
        process, device = rank
        place = "streamId" if table.is_of_device else "globalTid"
        names = ["start", "end", place, "correlationId", table.label, table.size]
        if table.is_of_device:
            where, values = f"{whole('globalPid', there)} = ? and {whole('deviceId')} = ?", [process, device]
        else:
            where, values = f"globalTid & {PROCESS} = ?", [process]
        blocks = columns(self._database, table.name, [whole(name, there) for name in names], where=where, values=values)
        for begins, ends, lines, correlations, labels, sizes in blocks:
            texts = [self._named(table, label) for label in labels]
            places = self._places(table, device, lines)
            rows.add(table.kind, (begins, ends), texts, places, correlation=correlations, bytes=sizes)

    def _named(self, table: Table, label: int) -> str:
        if table.is_named:
            return self._strings.get(label, f"name {label}")
        if table.name.endswith("MEMCPY"):
            return f"Memcpy {COPIES.get(label, '')}".rstrip()
        if table.kind == Kind.SYNC:
            return SYNCS.get(label, "synchronization")
        return LABELS[table.name].format(label)

    def _places(self, table: Table, device: int, lines: Sequence[int]) -> list[Place]:
        if table.is_of_device:
            by_line = {line: Place(f"stream {line}", device, line) for line in set(lines)}
        else:
            by_line = {line: self._thread(line) for line in set(lines)}
        return [by_line[line] for line in lines]

    def _thread(self, line: int) -> Place:
        name = self._strings.get(self._threads.get(line, NONE), "")
        return Place(f"thread {line & THREAD}" + (f" ({name})" if name else ""), NONE, line & THREAD)

    def _add_ranges(self, rows: RankRows, process: int) -> None:
        texts = [f'"{name}"' if name in self._nvtx else "null" for name in ("text", "jsonText")]
        chosen = [whole(name, self._nvtx) for name in ("start", "end", "globalTid", "textId")]
        where = f"eventType in {RANGES} and end is not null and globalTid & {PROCESS} = ?"
        for begins, ends, threads, ids, labels, payloads in columns(
            self._database, "NVTX_EVENTS", [*chosen, *texts], where=where, values=[process]
        ):
            named = [
                self._strings.get(key, "") if label is None else str(label)
                for label, key in zip(labels, ids, strict=True)
            ]
            for kind, chosen_rows, more in _ranges(rows, named, payloads):
                edges = [begins[row] for row in chosen_rows], [ends[row] for row in chosen_rows]
                names = [TORCH_RANGE.sub("", named[row])[:1000] for row in chosen_rows]
                rows.add(kind, edges, names, [self._thread(threads[row]) for row in chosen_rows], **more)

    def _begin_ns(self, there: set[str]) -> int:
        """Return the capture's begin on the clock of the day, to which its times are relative; 0 if not stated."""
        name = "TARGET_INFO_SESSION_START_TIME"
        stated = columns_of(self._database, name) if name in there else set()
        values = (
            [value for block in columns(self._database, name, [whole("utcEpochNs", stated)]) for value in block[0]]
            if stated
            else []
        )
        return values[0] if values and 0 < values[0] < 1 << 61 else 0

    def _node(self) -> str:
        name = "TARGET_INFO_SYSTEM_ENV"
        if not {"name", "value"} <= columns_of(self._database, name) or name not in tables_of(self._database):
            return ""
        values = [
            str(value)
            for [block] in columns(self._database, name, ["value"], where="name = 'Hostname'")
            for value in block
        ]
        return values[0][:200] if values else ""


def _ranges(
    rows: RankRows, labels: Sequence[str], payloads: Sequence[Any]
) -> Iterator[tuple[Kind, list[int], dict[str, Any]]]:
    """Yield operators of PyTorch, with their ids, and other ranges, with sizes and communicators of payloads."""
    matches = [TORCH_RANGE.search(label) for label in labels]
    operators = [row for row, match in enumerate(matches) if match]
    ids = [int(match.group(1) or NONE) for match in matches if match]
    yield Kind.OPERATOR, operators, {"operator": [one if one < 1 << 63 else NONE for one in ids]}
    others = [row for row, match in enumerate(matches) if not match]
    facts = [_payload(payloads[row]) for row in others]
    groups = [NONE if group is None else rows.groups.of([group])[0] for group, _ in facts]
    yield Kind.ANNOTATION, others, {"group": groups, "bytes": [size for _, size in facts]}


def _payload(text: object) -> tuple[Group | None, int]:
    """Return the communicator and the bytes that NCCL states, where the export has them."""
    if not isinstance(text, str) or "NCCL" not in text:
        return None, NONE
    try:
        members = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return None, NONE
    size, communicator = members.get("Message size [bytes]", NONE), members.get("NCCL communicator ID")
    group = None if communicator is None else Group(str(communicator)[:200])
    return group, size if isinstance(size, int) and 0 <= size < 1 << 63 else NONE
