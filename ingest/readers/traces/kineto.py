"""Traces of torch.profiler (Kineto): CUDA, ROCm, MTIA, and CPU with gloo; of Perfetto's and Chrome's JSON also.

Source: pytorch/kineto, libkineto/src/output_json.cpp; torch/csrc/profiler/kineto_shim.cpp (names of arguments).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import msgspec
import numpy as np

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.columns import Codes, EventColumns
from crosswind.data.traces.naming import kinds_of_kernels, with_operation
from crosswind.data.traces.trace import NONE, Events, Flags, Group, Kind, Place, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.binary import Bytes, plain_bytes
from crosswind.ingest.readers.traces.json_events import EventTypes, document
from crosswind.ingest.readers.traces.kineto_events import (
    MICROSECOND_NS,
    NO_ARGUMENTS,
    Arguments,
    Event,
    ExactEvent,
    integers,
    nanoseconds,
    needs_exact,
    whole,
)
from crosswind.ingest.readers.traces.reader import LIMIT
from crosswind.ingest.readers.traces.xla_lines import kind_of_line

EVENTS_LIMIT = 1 << 26  # of one rank: 67 million, 5 GB of columns
BEGUN_LIMIT = 1 << 18  # ranges that wait for their end at one time
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
    "hpu_op": Kind.KERNEL,
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
TYPES: EventTypes[Any] = EventTypes(Event, ExactEvent, needs_exact)
AnyEvent: TypeAlias = Event | ExactEvent
Thread: TypeAlias = tuple[object, object]  # pid and tid
BYTES_OF = {"float": 4, "int": 4, "half": 2, "bfloat16": 2, "double": 8, "long": 8, "byte": 1, "char": 1, "bool": 1}


@dataclass(frozen=True)
class KinetoReader:
    """One file is one rank; the rank stands in distributedInfo, or in the file's name.

    A file of more than `limit` bytes, unpacked, is refused.
    """

    limit: int = LIMIT
    name: ClassVar[str] = "kineto"
    version: ClassVar[int] = 4
    companions: ClassVar[tuple[str, ...]] = ()
    description: ClassVar[str] = "torch.profiler's trace (Kineto JSON, also .gz), or another in Chrome's format"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the content says it
        """Return whether it begins as a JSON object with what Kineto or Chrome write first."""
        text = plain_bytes(head).lstrip()
        is_object = text.startswith(b"{") and re.search(rb'"(traceEvents|schemaVersion|deviceProperties)"', text)
        return bool(is_object) or bool(text.startswith(b"[") and re.search(rb'"ph"\s*:', text))

    def read(self, path: Path, report: Report) -> Iterator[RankTrace]:
        """Yield the file's only rank. Raises: MalformedError, UnavailableError."""
        with Bytes(path, report, limit=self.limit) as stream:
            document_ = document(stream, TYPES, report)
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
    places: Codes[Thread] = field(default_factory=Codes)
    groups: Codes[str] = field(default_factory=Codes)
    threads: dict[Thread, str] = field(default_factory=dict)
    processes: dict[object, str] = field(default_factory=dict)
    group_facts: dict[object, Group] = field(default_factory=dict)
    pairs: dict[str, tuple[int, int]] = field(default_factory=dict)  # who sends to whom; NONE: this rank
    begun: dict[Thread, list[AnyEvent]] = field(default_factory=dict)  # ranges that wait for their end
    ignored: Counter[str] = field(default_factory=Counter)
    is_kineto: bool | None = None  # or another tool's, whose categories mean nothing to us

    def add(self, block: Sequence[AnyEvent]) -> None:
        """Add a block of entries. Raises: MalformedError when there are too many."""
        self._decide(block)
        kinds = KIND_CODES
        if self.is_kineto:
            events = [entry for entry in block if entry.ph == "X" and entry.cat in kinds]
        else:
            events = [entry for entry in block if entry.ph == "X"]
        if len(events) < len(block):
            self._add_others(block)
        if events:
            self._add(events, [event.dur for event in events])
        if self.report.read > EVENTS_LIMIT:
            raise MalformedError(f"{self.report.path}: more than {EVENTS_LIMIT} events; expected the trace of one rank")

    def _decide(self, block: Sequence[AnyEvent]) -> None:
        """Settle whether the categories are Kineto's, by the first block that has some."""
        if self.is_kineto is None:
            categories = {entry.cat for entry in block if entry.ph in ("X", "B")} - LEFT_OUT
            self.is_kineto = bool(categories & KIND_CODES.keys()) if categories else None

    def _add_others(self, block: Sequence[AnyEvent]) -> None:
        """Add what is not one entry with a duration: names of threads, and ranges whose begin and end stand apart."""
        pairs = []
        for entry in block:
            if entry.ph == "M":
                self._label(entry)
            elif entry.ph == "B":
                self.begun.setdefault((entry.pid, entry.tid), []).append(entry)
            elif entry.ph == "E" and (stack := self.begun.get((entry.pid, entry.tid))):
                pairs.append((stack.pop(), entry))
            else:
                self._ignore(entry)
        if sum(map(len, self.begun.values())) > BEGUN_LIMIT:
            raise MalformedError(f"{self.report.path}: more than {BEGUN_LIMIT} ranges that begin and do not end")
        if pairs:
            self._add([begin for begin, _ in pairs], None, [end.ts for _, end in pairs])

    def _ignore(self, entry: AnyEvent) -> None:
        if entry.ph == "X":
            if self.is_kineto and entry.cat not in KIND_CODES and entry.cat not in LEFT_OUT:
                self.ignored[f"events of category {entry.cat!r} are not analysed"] += 1
        elif entry.ph in ("E", "b", "e"):
            self.ignored["ends of ranges without a begin, or asynchronous ranges, are not analysed"] += 1

    def _label(self, entry: AnyEvent) -> None:
        if entry.name == "thread_name" and entry.args:
            self.threads[entry.pid, entry.tid] = str(entry.args.name)[:200]
        elif entry.name == "process_name" and entry.args:
            self.processes[entry.pid] = str(entry.args.name)[:200]

    def _add(self, events: list[AnyEvent], durations: list[Any] | None, ends: list[Any] | None = None) -> None:
        begin_ns, is_good = nanoseconds([event.ts for event in events])
        if ends is None:
            duration_ns, fits = nanoseconds(durations or [])
        else:
            end_ns, fits = nanoseconds(ends)
            duration_ns = end_ns - begin_ns
        is_good &= fits & (duration_ns >= 0)
        if not is_good.all():
            events = self._without_bad(events, is_good)
            begin_ns, duration_ns = begin_ns[is_good], duration_ns[is_good]
        self.report.read += len(events)
        arguments = [event.args or NO_ARGUMENTS for event in events]
        annotation = int(Kind.ANNOTATION)
        columns: dict[str, Any] = {
            "begin_ns": begin_ns,
            "duration_ns": duration_ns,
            "kind": [KIND_CODES.get(event.cat, annotation) for event in events],
            "name": self.names.of([event.name for event in events]),
            "place": self.places.of([(event.pid, event.tid) for event in events]),
            "correlation": integers([one.correlation for one in arguments]),
            "operator": integers([one.external for one in arguments]),
            "bytes": integers([one.bytes for one in arguments]),
        }
        self._add_collectives(events, arguments, columns)
        self.columns.add(len(events), columns)

    def _without_bad(self, events: list[AnyEvent], is_good: Flags) -> list[AnyEvent]:
        for row in np.flatnonzero(~is_good):
            self.report.skip(0, str(events[row])[:200], "no time of an event: expected ts and dur >= 0, microseconds")
        return [event for event, good in zip(events, is_good, strict=True) if good]

    def _add_collectives(self, events: Sequence[AnyEvent], arguments: list[Arguments], columns: dict[str, Any]) -> None:
        """Fill in what few events have: names, sizes, communicators and numbers of collectives, and FLOPs."""
        rows = [
            row
            for row, one in enumerate(arguments)
            if one.collective is not None
            or one.group is not None
            or one.flops is not None
            or one.communicator is not None
        ]
        if not rows:
            return
        count = len(arguments)
        group, sequence = np.full(count, NONE, np.int32), np.full(count, NONE, np.int64)
        flops = np.full(count, np.nan)
        for row in rows:
            one = arguments[row]
            flops[row] = one.flops if isinstance(one.flops, int | float) else np.nan
            if one.collective is not None:
                [columns["name"][row]] = self.names.of([_named(events[row], one)])
            if (size := _message_bytes(one)) != NONE:
                columns["bytes"][row] = size
            if one.group is not None or one.communicator is not None:
                [group[row]] = self.groups.of([self._group(one)])
                sequence[row] = whole(one.sequence)
            if columns["kind"][row] == Kind.KERNEL and (one.collective is not None or group[row] != NONE):
                columns["kind"][row] = int(Kind.COLLECTIVE)  # whatever its name
        columns |= {"group": group, "sequence": sequence, "flops": flops}

    def _group(self, one: Arguments) -> str:
        name = str(one.communicator if one.group is None else one.group)[:200]
        pair = whole(one.source), whole(one.destination)
        key = name if pair == (NONE, NONE) else f"{name} {pair[0]}>{pair[1]}"
        if key not in self.group_facts:
            self.group_facts[key] = Group(name, _ranks(one.ranks), max(0, whole(one.group_size)))
            self.pairs[key] = pair
        return key

    def trace(self, path: Path, stated: Mapping[str, Any]) -> RankTrace:
        """Return the trace of all blocks. Raises: MalformedError when nothing in it has a duration."""
        events = self.columns.events()
        if not len(events):
            raise MalformedError(f"{path}: no event with a duration; expected a trace of torch.profiler")
        names = tuple(self.names.number_of)
        self.ignored["ranges never end"] += sum(map(len, self.begun.values()))
        resolution_ns = 1 if np.any(events.begin_ns % MICROSECOND_NS) else MICROSECOND_NS
        events = self._classified_by_line(_after(events, stated), names)
        if not self.is_kineto:
            ranges = int(np.count_nonzero(events.kind == Kind.ANNOTATION))
            self.ignored["events are of another tool's categories: they are ranges, and no work"] = ranges
        distributed = stated.get("distributedInfo") or {}
        distributed = distributed if isinstance(distributed, dict) else {}
        rank = _number_or_none(distributed.get("rank"))
        return RankTrace(
            _classified(events, names),
            names,
            self._places(events),
            tuple(_paired(self.group_facts[key], self.pairs[key], rank) for key in self.groups.number_of),
            rank=rank,
            world_size=_number_or_none(distributed.get("world_size")),
            node=str(stated.get("host_name", ""))[:200],
            run=str(stated.get("job_name") or stated.get("job_id") or "")[:200],
            source=str(path),
            format="kineto",
            resolution_ns=resolution_ns,
            notes=tuple(f"{count} {text}" for text, count in self.ignored.items() if count),
        )

    def _places(self, events: Events) -> tuple[Place, ...]:
        of_device = set(np.unique(events.place[events.kind <= Kind.COPY]).tolist())
        return tuple(self._place(key, code in of_device) for key, code in self.places.number_of.items())

    def _place(self, key: Thread, is_device: bool) -> Place:
        pid, tid = key
        label = self.threads.get(key, f"stream {tid}" if is_device else f"thread {tid}")
        return Place(label, whole(pid) if is_device else NONE, whole(tid))

    def _classified_by_line(self, events: Events, names: tuple[str, ...]) -> Events:
        """Return events whose kind is that of their thread, where XLA's profiler names processes "/device:..."."""
        kind = events.kind.copy()
        by_name = kinds_of_kernels(names)
        for (pid, tid), code in self.places.number_of.items():
            process = self.processes.get(pid, "")
            if not self.is_kineto and process.startswith("/"):
                is_here = events.place == code
                line = kind_of_line(process, self.threads.get((pid, tid), ""))
                kind[is_here] = by_name[events.name[is_here]] if line == Kind.KERNEL else line
        return Events(**(events.columns | {"kind": kind}))


def _after(events: Events, stated: Mapping[str, Any]) -> Events:
    """Return events on the clock that begins where their base does: that of the file's ranks is the same."""
    base_ns = whole(stated.get("baseTimeNanoseconds", 0))
    if not 0 < base_ns < 1 << 61 or not 0 <= int(events.begin_ns.min()) <= int(events.begin_ns.max()) < 1 << 61:
        return events
    return Events(**(events.columns | {"begin_ns": events.begin_ns + base_ns}))


def _paired(group: Group, pair: tuple[int, int], rank: int | None) -> Group:
    """Return the sender and the receiver of a communicator, of whom a trace states the other; else the group."""
    ends = tuple(rank if one == NONE else one for one in pair)
    source, destination = ends
    if pair == (NONE, NONE) or source is None or destination is None or source == destination:
        return group
    return Group(f"{group.name} {source}>{destination}", (source, destination), 2, group.ranks)


def _number_or_none(value: object) -> int | None:
    number = whole(value)
    return None if number == NONE else number


def _ranks(value: object) -> tuple[int, ...]:
    """Return the ranks of "[0, 1]", or of a list; none where the list was shortened by "..."."""
    if isinstance(value, str) and re.fullmatch(r"\[[\d, ]*\]", value):
        value = msgspec.json.decode(value)
    return tuple(value) if isinstance(value, list) and all(whole(one) != NONE for one in value) else ()


def _named(event: AnyEvent, one: Arguments) -> str:
    """Return an event's name, with the operation of a kernel of which the name alone does not say it."""
    is_kernel = KIND_CODES.get(event.cat) == Kind.KERNEL
    return with_operation(event.name, str(one.collective)[:100]) if is_kernel else event.name


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
