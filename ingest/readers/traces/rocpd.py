"""SQLite files of rocprofv3 and ROCm Systems Profiler (rocpd), schema 3.x and 4.1, written from their public schema.

A rank is a process on a device. Source: ROCm/rocm-systems, projects/rocprofiler-sdk/source/share/rocprofiler-sdk-rocpd:
versions/3.0.3/rocpd_tables.sql. A recorded file was not at our disposal: the tests make theirs by that schema.
"""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.trace import NONE, Kind, Place, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.binary import plain_bytes
from crosswind.ingest.readers.sqlite_file import MAGIC, columns_of, opened, tables_of
from crosswind.ingest.readers.traces.rank_rows import RankRows
from crosswind.ingest.readers.traces.reader import LIMIT
from crosswind.ingest.readers.traces.sqlite_columns import columns, pairs, whole

DISPATCH = re.compile(r"rocpd_kernel_dispatch(_[0-9A-Za-z_]+)?")  # tables of each capture end in its id


@dataclass(frozen=True)
class RocpdReader:
    """One file is a process, or several merged."""

    name: ClassVar[str] = "rocpd"
    version: ClassVar[int] = 1
    companions: ClassVar[tuple[str, ...]] = ()
    description: ClassVar[str] = "rocprofv3's SQLite file (rocpd)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the content says it
        """Return whether it is an SQLite file with rocpd's tables."""
        plain = plain_bytes(head)
        return plain.startswith(MAGIC) and b"rocpd_" in plain and b"rocpd_api" not in plain

    def read(self, path: Path, report: Report) -> Iterator[RankTrace]:
        """Yield a trace for each process on each device. Raises: MalformedError, UnavailableError."""
        with opened(path, report, [], packed_limit=LIMIT) as database:
            matches = [match for name in tables_of(database) if (match := DISPATCH.fullmatch(name))]
            captures = [_Capture(database, path, match.group(1) or "") for match in matches]
            ranks = [(capture, rank) for capture in captures for rank in capture.ranks()]
            if not ranks:
                raise MalformedError(f"{path}: no dispatches or copies; expected a trace of rocprofv3")
            for capture, rank in ranks:
                trace = capture.trace(*rank)
                report.read += len(trace.events)
                yield trace


class _Capture:
    """The tables that end in one id."""

    def __init__(self, database: sqlite3.Connection, path: Path, ending: str) -> None:
        self._database, self._path, self._ending = database, path, ending
        self._strings = self._pairs("string", "id", "string")
        self._kernels = self._pairs("info_kernel_symbol", "id", "display_name")
        self._types = self._pairs("info_agent", "id", "type")
        self._numbers = self._pairs("info_agent", "id", "type_index")
        self._threads = self._pairs("info_thread", "id", "tid")
        self._correlations = self._pairs("event", "id", "stack_id")
        self._categories = self._pairs("event", "id", "category_id")

    def _pairs(self, table: str, key: str, value: str) -> dict[int, Any]:
        return pairs(self._database, f"rocpd_{table}{self._ending}", key, value)

    def _columns(
        self, table: str, names: Sequence[str], where: str = "true", *values: int
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Yield blocks of whole numbers. Raises: MalformedError where begin and end are not in the table."""
        name = f"rocpd_{table}{self._ending}"
        if name not in tables_of(self._database):
            return iter(())
        there = columns_of(self._database, name)
        if lacking := {"pid", "start", "end"} - there:
            raise MalformedError(
                f"{self._path}: {name} has no column {min(lacking)}; expected rocpd's schema 3.x or 4.1"
            )
        chosen = [whole(column, there) for column in names]
        return columns(self._database, name, chosen, where=where, values=values)

    def ranks(self) -> list[tuple[int, int]]:
        """Return processes and agents that worked."""
        ranks: set[tuple[int, int]] = set()
        for processes, agents in self._columns("kernel_dispatch", ["pid", "agent_id"]):
            ranks |= set(zip(processes, agents, strict=True))
        for processes, targets, sources in self._columns("memory_copy", ["pid", "dst_agent_id", "src_agent_id"]):
            ranks |= set(zip(processes, map(self._agent, targets, sources), strict=True))
        return sorted(ranks)

    def _agent(self, target: int, source: int) -> int:
        return target if self._types.get(target) == "GPU" else source

    def trace(self, process: int, agent: int) -> RankTrace:
        """Return a process's events on one agent, and its calls."""
        rows = RankRows(str(self._path))
        self._add_kernels(rows, process, agent)
        self._add_copies(rows, process, agent)
        self._add_regions(rows, process)
        nodes = self._pairs("info_node", "id", "hostname")
        node = str(nodes.get(self._pairs("info_process", "id", "nid").get(process, NONE), ""))[:200]
        return rows.trace(node=node, format="rocpd")

    def _add_kernels(self, rows: RankRows, process: int, agent: int) -> None:
        names = ["start", "end", "kernel_id", "stream_id", "event_id"]
        where = f"{whole('pid')} = ? and {whole('agent_id')} = ?"
        for begins, ends, kernels, streams, events in self._columns("kernel_dispatch", names, where, process, agent):
            texts = [str(self._kernels.get(one) or "unknown kernel")[:1000] for one in kernels]
            places = self._streams(streams, agent)
            rows.add(Kind.KERNEL, (begins, ends), texts, places, correlation=_numbers(events, self._correlations))

    def _add_copies(self, rows: RankRows, process: int, agent: int) -> None:
        names = ["start", "end", "name_id", "stream_id", "event_id", "size", "dst_agent_id", "src_agent_id"]
        for block in self._columns("memory_copy", names, f"{whole('pid')} = ?", process):
            chosen = [row for row in zip(*block, strict=True) if self._agent(row[6], row[7]) == agent]
            begins, ends, texts, streams, events, sizes, *_ = zip(*chosen, strict=True) if chosen else [()] * 8
            named, places = [self._text(one) for one in texts], self._streams(streams, agent)
            more = {"correlation": _numbers(events, self._correlations), "bytes": sizes}
            rows.add(Kind.COPY, (begins, ends), named, places, **more)

    def _add_regions(self, rows: RankRows, process: int) -> None:
        names = ["start", "end", "name_id", "tid", "event_id"]
        for begins, ends, texts, threads, events in self._columns("region", names, f"{whole('pid')} = ?", process):
            categories = [self._text(one).upper() for one in _numbers(events, self._categories)]
            is_call = [category.startswith(("HIP", "HSA")) for category in categories]
            for kind, wanted in ((Kind.CALL, True), (Kind.ANNOTATION, False)):
                chosen = [row for row, one in enumerate(is_call) if one == wanted]
                places = [self._thread(threads[row]) for row in chosen]
                named = [self._text(texts[row]) for row in chosen]
                edges = [begins[row] for row in chosen], [ends[row] for row in chosen]
                correlations = _numbers([events[row] for row in chosen], self._correlations)
                rows.add(kind, edges, named, places, correlation=correlations)

    def _text(self, number: int) -> str:
        return str(self._strings.get(number, f"name {number}"))[:1000]

    def _streams(self, streams: Sequence[int], agent: int) -> list[Place]:
        [device] = _numbers([agent], self._numbers)
        return [Place(f"stream {stream}", device, stream) for stream in streams]

    def _thread(self, number: int) -> Place:
        [thread] = _numbers([number], self._threads)
        return Place(f"thread {thread}", NONE, thread)


def _numbers(keys: Sequence[int], values: Mapping[int, Any]) -> list[int]:
    """Return the values of keys that are whole numbers; NONE for others."""
    chosen = [values.get(key, NONE) for key in keys]
    return [value if isinstance(value, int) else NONE for value in chosen]
