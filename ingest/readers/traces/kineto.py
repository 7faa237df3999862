"""Traces of torch.profiler (Kineto): CUDA, ROCm, MTIA, and CPU with gloo; of Perfetto's and Chrome's JSON also.

Source: pytorch/kineto, libkineto/src/output_json.cpp; torch/csrc/profiler/kineto_shim.cpp (names of arguments).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.columns import Codes, EventColumns
from crosswind.data.traces.naming import kinds_of_kernels
from crosswind.data.traces.trace import NONE, Events, Group, Kind, Place, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.binary import Bytes, plain_bytes
from crosswind.ingest.readers.traces.json_events import document
from crosswind.ingest.readers.traces.reader import LIMIT

MICROSECOND_NS = 1000
EXACT_BELOW = 2.0**43  # microseconds: up to here a double holds whole nanoseconds
FINE = re.compile(rb'"ts"\s*:\s*(\d+)\.\d*[1-9]')
STEP = re.compile(r"ProfilerStep\s*#?\s*(\d+)")
HOST_MESSAGE = ("gloo:", "mpi:", "ucc:")
WAITS = re.compile(r"Synchronize|StreamWaitEvent|EventQuery|hipDeviceSync", re.IGNORECASE)
KINDS = {  # by category; older Kineto wrote Kernel, Memcpy, Memset, Runtime, Operator
    "kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.COPY,
    "gpu_memset": Kind.COPY,
    "memcpy": Kind.COPY,
    "memset": Kind.COPY,
    "cpu_op": Kind.OPERATOR,
    "operator": Kind.OPERATOR,
    "cuda_runtime": Kind.CALL,
    "cuda_driver": Kind.CALL,
    "hip_runtime": Kind.CALL,
    "mtia_runtime": Kind.CALL,
    "mtia_ccp_events": Kind.KERNEL,
    "privateuse1_runtime": Kind.CALL,
    "privateuse1_driver": Kind.CALL,
    "xpu_runtime": Kind.CALL,
    "xpu_driver": Kind.CALL,
    "runtime": Kind.CALL,
    "cuda_sync": Kind.SYNC,
    "user_annotation": Kind.ANNOTATION,
    "python_function": Kind.FRAME,
}
LEFT_OUT = {"gpu_user_annotation", "Trace", "cpu_instant_event", "overhead"}  # ranges that repeat others, or no work
KIND_CODES = {name: int(kind) for name, kind in KINDS.items()} | {name.title(): int(k) for name, k in KINDS.items()}
BYTES_OF = {"float": 4, "int": 4, "half": 2, "bfloat16": 2, "double": 8, "long": 8, "byte": 1, "char": 1, "bool": 1}


class Arguments(msgspec.Struct, gc=False):
    """What an event says of itself; of any type, as producers differ."""

    correlation: Any = NONE
    external: Any = msgspec.field(default=NONE, name="External id")
    stream: Any = None
    device: Any = NONE
    bytes: Any = NONE
    flops: Any = None
    collective: Any = msgspec.field(default=None, name="Collective name")
    elements_in: Any = msgspec.field(default=NONE, name="In msg nelems")
    elements_out: Any = msgspec.field(default=NONE, name="Out msg nelems")
    dtype: Any = None
    group_size: Any = msgspec.field(default=0, name="Group size")
    group: Any = msgspec.field(default=None, name="Process Group Name")
    ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    sequence: Any = msgspec.field(default=NONE, name="Seq")
    communicator: Any = msgspec.field(default=None, name="Comms Id")
    name: Any = None  # of a thread or process


class Event(msgspec.Struct, gc=False):
    """An entry of traceEvents."""

    ph: str
    name: str = ""
    cat: str = ""
    pid: int | str | None = None
    tid: int | str | None = None
    ts: float = 0.0
    dur: float = 0.0
    args: Arguments | None = None


NO_ARGUMENTS = Arguments()


@dataclass(frozen=True)
class KinetoReader:
    """One file is one rank; the rank stands in distributedInfo, or in the file's name."""

    name: ClassVar[str] = "kineto"
    description: ClassVar[str] = "torch.profiler's trace (Kineto JSON, also .gz), or another in Chrome's format"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the content says it
        """Return whether it begins as a JSON object with what Kineto or Chrome write first."""
        text = plain_bytes(head).lstrip()
        is_object = text.startswith(b"{") and re.search(rb'"(traceEvents|schemaVersion|deviceProperties)"', text)
        return bool(is_object) or bool(text.startswith(b"[") and re.search(rb'"ph"\s*:', text))

    def read(self, path: Path, report: Report) -> Iterator[RankTrace]:
        """Yield the file's only rank. Raises: MalformedError, UnavailableError."""
        with Bytes(path, report, limit=LIMIT) as stream:
            document_ = document(stream, Event, report)
            collected = _Collected(report)
            for block in document_.blocks:
                collected.add(block)
        yield collected.trace(path, document_.stated)


@dataclass
class _Collected:
    """The events so far; names, threads and communicators by number."""

    report: Report
    columns: EventColumns = field(default_factory=EventColumns)
    names: Codes[str] = field(default_factory=Codes)
    places: Codes[tuple[object, object]] = field(default_factory=Codes)
    groups: Codes[str] = field(default_factory=Codes)
    threads: dict[tuple[object, object], str] = field(default_factory=dict)
    group_facts: dict[object, Group] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)

    def add(self, block: Sequence[Event]) -> None:
        """Add a block of entries: those with a duration are events, and others name threads."""
        kinds = KIND_CODES
        for entry in block:
            if entry.ph == "M":
                self._label(entry)
        events = [entry for entry in block if entry.ph == "X" and entry.cat in kinds]
        self._count_unknown(block)
        if events:
            self.report.read += len(events)
            self._add(events)

    def _label(self, entry: Event) -> None:
        if entry.name == "thread_name" and entry.args:
            self.threads[entry.pid, entry.tid] = str(entry.args.name)[:200]

    def _count_unknown(self, block: Sequence[Event]) -> None:
        for entry in block:
            if entry.ph == "X" and entry.cat not in KIND_CODES and entry.cat not in LEFT_OUT:
                self.unknown[entry.cat] = self.unknown.get(entry.cat, 0) + 1

    def _add(self, events: list[Event]) -> None:
        arguments = [event.args or NO_ARGUMENTS for event in events]
        columns: dict[str, Any] = {
            "begin_ns": nanoseconds([event.ts for event in events]),
            "duration_ns": nanoseconds([event.dur for event in events]),
            "kind": [KIND_CODES[event.cat] for event in events],
            "name": self.names.of([event.name for event in events]),
            "place": self.places.of([(event.pid, event.tid) for event in events]),
            "correlation": integers([one.correlation for one in arguments]),
            "operator": integers([one.external for one in arguments]),
            "bytes": integers([one.bytes for one in arguments]),
        }
        self._add_collectives(arguments, columns)
        self.columns.add(len(events), columns)

    def _add_collectives(self, arguments: list[Arguments], columns: dict[str, Any]) -> None:
        """Fill in what few events have: sizes, communicators and sequence numbers of collectives, and FLOPs."""
        rows = [row for row, one in enumerate(arguments) if one.group is not None or one.flops is not None]
        if not rows:
            return
        count = len(arguments)
        group, sequence = np.full(count, NONE, np.int32), np.full(count, NONE, np.int64)
        flops = np.full(count, np.nan)
        for row in rows:
            one = arguments[row]
            flops[row] = one.flops if isinstance(one.flops, int | float) else np.nan
            if one.group is None:
                continue
            [group[row]] = self.groups.of([self._group(one)])
            sequence[row] = whole(one.sequence)
            columns["bytes"][row] = _message_bytes(one)
        columns |= {"group": group, "sequence": sequence, "flops": flops}

    def _group(self, one: Arguments) -> str:
        name = str(one.group)[:200]
        if name not in self.group_facts:
            self.group_facts[name] = Group(name, _ranks(one.ranks), max(0, whole(one.group_size)))
        return name

    def trace(self, path: Path, stated: Mapping[str, Any]) -> RankTrace:
        """Return the trace of all blocks. Raises: MalformedError when nothing in it has a duration."""
        events = self.columns.events()
        if not len(events):
            raise MalformedError(f"{path}: no event with a duration; expected a trace of torch.profiler")
        names = tuple(self.names.number_of)
        distributed = stated.get("distributedInfo") or {}
        distributed = distributed if isinstance(distributed, dict) else {}
        return RankTrace(
            _classified(events, names),
            names,
            tuple(self._place(key, events) for key in self.places.number_of),
            tuple(self.group_facts[name] for name in self.groups.number_of),
            rank=_number_or_none(distributed.get("rank")),
            world_size=_number_or_none(distributed.get("world_size")),
            node=str(stated.get("host_name", ""))[:200],
            run=str(stated.get("job_name") or stated.get("job_id") or "")[:200],
            source=str(path),
            format="kineto",
            resolution_ns=1 if np.any(events.begin_ns % MICROSECOND_NS) else MICROSECOND_NS,
            notes=tuple(f"{count} events of category {cat!r} are not analysed" for cat, count in self.unknown.items()),
        )

    def _place(self, key: tuple[object, object], events: Events) -> Place:
        pid, tid = key
        code = self.places.number_of[key]
        is_device = bool(np.any(events.kind[events.place == code] <= Kind.COPY))
        label = self.threads.get((pid, tid), f"stream {tid}" if is_device else f"thread {tid}")
        return Place(label, whole(pid) if is_device else NONE, whole(tid))


def nanoseconds(microseconds: list[float]) -> NDArray[np.int64]:
    """Return times in whole nanoseconds; the parts before and after the point apart, as their product is not exact."""
    times = np.array(microseconds)
    units = np.floor(times)
    fractions = np.rint((times - units) * MICROSECOND_NS)
    return np.asarray(units.astype(np.int64) * MICROSECOND_NS + fractions.astype(np.int64))


def integers(values: list[Any]) -> NDArray[np.int64]:
    """Return whole numbers; NONE for anything else."""
    try:
        array = np.array(values)
    except (ValueError, OverflowError):
        array = np.empty(0, object)
    if array.dtype == np.int64:
        return array
    return np.array([whole(value) for value in values], np.int64)


def whole(value: object) -> int:
    """Return a whole number from 0, also one written as text; NONE for anything else."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 19:
        return int(value)
    is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
    return value if is_number else NONE  # type: ignore[return-value]


def _number_or_none(value: object) -> int | None:
    number = whole(value)
    return None if number == NONE else number


def _ranks(value: object) -> tuple[int, ...]:
    """Return the ranks of "[0, 1]", or of a list; none where the list was shortened by "..."."""
    if isinstance(value, str) and re.fullmatch(r"\[[\d, ]*\]", value):
        value = msgspec.json.decode(value)
    return tuple(value) if isinstance(value, list) and all(whole(one) != NONE for one in value) else ()


def _message_bytes(one: Arguments) -> int:
    elements = max(whole(one.elements_in), whole(one.elements_out))
    size = BYTES_OF.get(str(one.dtype).lower())
    return elements * size if size and elements != NONE else NONE


def _classified(events: Events, names: tuple[str, ...]) -> Events:
    """Return events with the kinds that names show: collectives, steps, waits, and messages on the host."""
    kind = events.kind.copy()
    by_name = kinds_of_kernels(names)
    is_kernel = kind == Kind.KERNEL
    kind[is_kernel] = by_name[events.name[is_kernel]]
    for old, new, codes in (
        (Kind.ANNOTATION, Kind.STEP, [STEP.fullmatch(name) is not None for name in names]),
        (Kind.OPERATOR, Kind.STEP, [STEP.fullmatch(name) is not None for name in names]),
        (Kind.ANNOTATION, Kind.MESSAGE, [name.startswith(HOST_MESSAGE) for name in names]),
        (Kind.CALL, Kind.SYNC, [WAITS.search(name) is not None for name in names]),
    ):
        kind[(kind == old) & np.array(codes, bool)[events.name]] = new
    return Events(**(events.columns | {"kind": kind}))
