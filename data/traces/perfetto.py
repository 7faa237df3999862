"""Traces of all ranks as one file for Perfetto: a process is a rank, its streams and threads are the process's.

Source: "Trace Event Format", Google, 2016; torch.profiler's categories, so that its readers understand the file.
"""

import gzip
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from crosswind.data.traces.trace import NONE, Events, Kind, RankTrace

CATEGORIES: Mapping[Kind, str] = {
    Kind.KERNEL: "kernel",
    Kind.COLLECTIVE: "kernel",
    Kind.COPY: "gpu_memcpy",
    Kind.OPERATOR: "cpu_op",
    Kind.CALL: "cuda_runtime",
    Kind.SYNC: "cuda_sync",
    Kind.ANNOTATION: "user_annotation",
    Kind.STEP: "user_annotation",
    Kind.FRAME: "python_function",
    Kind.MESSAGE: "user_annotation",
    Kind.USEFUL: "cpu_op",
    Kind.IO: "user_annotation",
}
MERGED = "mergedRanks"  # before the events of a file of several ranks, which is no trace of a rank
BLOCK = 20_000  # events that are in memory as text at once
LEVEL = 5  # of gzip: a third of the time of 9, and 3 % larger
LANE = 100_000  # of threads: events of one place that overlap without one in the other go to a lane beside it


def write_perfetto(traces: Iterable[RankTrace], ranks: Sequence[int], path: Path, base_ns: int | None = None) -> None:
    """Write traces of one clock to PATH or compressed where that ends in .gz, at once or not at all. Raises: OSError.

    Each trace may be freed once the next one is asked for, if the base is given: when the first of all events begins.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with partial.open("wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) as packed:
                    packed.writelines(perfetto_pieces(traces, ranks, base_ns))
            else:
                raw.writelines(perfetto_pieces(traces, ranks, base_ns))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def perfetto_pieces(traces: Iterable[RankTrace], ranks: Sequence[int], base_ns: int | None = None) -> Iterator[bytes]:
    """Yield the file in pieces."""
    if base_ns is None:
        traces = list(traces)
        base_ns = first_begin_ns(traces)
    head = {"schemaVersion": 1, "displayTimeUnit": "ns", "baseTimeNanoseconds": base_ns}
    head |= {MERGED: len(ranks)} if len(ranks) > 1 else {}
    yield json.dumps(head)[:-1].encode() + b', "traceEvents": [\n'
    comma = b""
    for trace, rank in zip(traces, ranks, strict=True):
        for piece in _Rank(trace, rank, -base_ns).pieces():
            yield comma + piece
            comma = b",\n"
    yield b"\n]}\n"


def first_begin_ns(traces: Iterable[RankTrace]) -> int:
    """Return when the first event of all traces begins; 0 without any."""
    return min((int(trace.events.begin_ns[0]) for trace in traces if len(trace.events)), default=0)


@dataclass
class _Rank:
    """A rank that is being written."""

    trace: RankTrace
    rank: int
    shift_ns: int
    lanes: dict[int, list[list[int]]] = field(default_factory=lambda: defaultdict(list))  # of a place: open ends

    def pieces(self) -> Iterator[bytes]:
        """Yield its events, and then the names of its streams and threads."""
        names = [json.dumps(name) for name in self.trace.names]
        for first in range(0, len(self.trace.events), BLOCK):
            rows = np.arange(first, min(first + BLOCK, len(self.trace.events)))
            yield ",\n".join(self._entries(self.trace.events.where(rows), names)).encode()
        yield ",\n".join(_labels(self.trace, self.rank, self.lanes)).encode()

    def _entries(self, events: Events, names: Sequence[str]) -> Iterator[str]:
        columns = [column.tolist() for column in events.columns.values()]
        for begin, duration, kind, name, place, *stated, _ in zip(*columns, strict=True):
            thread = place + LANE * _lane(self.lanes[place], begin, begin + duration)
            yield (
                f'{{"ph":"X","cat":"{CATEGORIES[Kind(kind)]}","name":{names[name]},"pid":{self.rank},"tid":{thread},'
                f'"ts":{_microseconds(begin + self.shift_ns)},"dur":{_microseconds(duration)},'
                f'"args":{json.dumps(self._arguments(*stated))}}}'
            )

    def _arguments(self, *stated: int) -> dict[str, object]:
        """Return what an event states: correlation, operator, process group, sequence number and bytes."""
        named = zip(("correlation", "External id", "group", "Seq", "bytes"), stated, strict=True)
        arguments: dict[str, object] = {name: value for name, value in named if value != NONE}
        if "group" in arguments:
            group = self.trace.groups[int(str(arguments.pop("group")))]
            arguments |= {"Process Group Name": group.name, "Process Group Ranks": json.dumps(group.ranks)}
        return arguments


def _lane(lanes: list[list[int]], begin: int, end: int) -> int:
    """Return the first lane in which a range lies beside or within the others; ranges come in the order of begins."""
    for number, ends in enumerate(lanes):
        while ends and ends[-1] <= begin:
            ends.pop()
        if not ends or end <= ends[-1]:
            ends.append(end)
            return number
    lanes.append([end])
    return len(lanes) - 1


def _microseconds(ns: int) -> str:
    """Return a time in microseconds with all its nanoseconds, which a double would round."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"


def _labels(trace: RankTrace, rank: int, lanes: Mapping[int, list[list[int]]]) -> Iterator[str]:
    node = f" on {trace.node}" if trace.node else ""
    yield _label("process_name", rank, 0, {"name": f"rank {rank}{node}"})
    yield _label("process_sort_index", rank, 0, {"sort_index": rank})
    for place, open_ranges in sorted(lanes.items()):
        label, is_device = trace.places[place].label, trace.places[place].device != NONE
        for lane in range(len(open_ranges)):
            thread = place + LANE * lane
            yield _label("thread_name", rank, thread, {"name": f"{label} ({lane + 1})" if lane else label})
            yield _label("thread_sort_index", rank, thread, {"sort_index": place + LANE * is_device})


def _label(name: str, rank: int, thread: int, arguments: Mapping[str, object]) -> str:
    return json.dumps({"ph": "M", "name": name, "pid": rank, "tid": thread, "args": arguments})
