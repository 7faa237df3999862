"""Timelines of Horovod: when each rank was ready for each tensor, and rank 0's work on it."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import SERIES, imported_id, labels_text
from crosswind.data.schema.metric import MetricSet, Scalar
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import COLLECTIVE
from crosswind.ingest.reader.lines import changed_ns, plain_head
from crosswind.ingest.reader.reader import Context, Record, Report
from crosswind.ingest.readers.binary import BLOCK_BYTES, Bytes
from crosswind.ingest.readers.clock import EARLIEST_SECONDS, LATEST_SECONDS
from crosswind.ingest.readers.logs.training_log import ROWS_AT_ONCE

EVENT_LIMIT = 1 << 20  # characters
MICROSECOND = 1000
BEGINNING = re.compile(r"^\s*\[\s*\{")
BEGIN, NEGOTIATION = re.compile(r'"ph": *"B"'), re.compile(r'"name": *"NEGOTIATE_')
START = "start_time_since_epoch_in_micros"
OPERATIONS = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "ALLTOALL": "all_to_all",
    "REDUCESCATTER": "reduce_scatter",
}
DTYPE = re.compile(r"[a-z]{1,20}(\d{1,4})")
SHAPE = re.compile(r"\[(\d{1,18}(?:, *\d{1,18}){0,30})?\]")


@dataclass(slots=True)
class _Tensor:
    """The state of one tensor in Horovod, which models tensors as processes."""

    name: str
    turn: int = -1  # how often it was negotiated before
    begun: list[tuple[str, int]] = field(default_factory=list)
    ready: dict[int, int] = field(default_factory=dict)  # ranks, and when rank 0 was notified of them


@dataclass
class Timeline:
    """One reading of one timeline. Raises: MalformedError, UnavailableError.

    Source: horovod/common/timeline.cc; docs/timeline.rst.
    """

    path: Path
    report: Report
    context: Context
    _tensors: dict[int, _Tensor] = field(default_factory=dict)
    _rows: dict[str, dict[str, list[Scalar]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    _remarks: Counter[str] = field(default_factory=Counter)
    _run_id: str = ""
    _start_us: int | None = None
    _last_us: int = 0
    _ranks: set[int] = field(default_factory=set)
    _is_placed: bool = False

    def records(self) -> Iterator[Record]:
        """Yield the run, its collectives and rank 0's activities in them."""
        for number, event in events(self.path, self.report):
            if not self._run_id and event.get("ph") in ("B", "E", "X"):
                self._open(event)
            try:
                self._take(event)
            except (KeyError, TypeError, ValueError, MalformedError) as error:
                self.report.skip(number, json.dumps(event)[:200], f"no event of a timeline: {error!s:.100}")
            if sum(len(columns["ts_ns"]) for columns in self._rows.values()) > ROWS_AT_ONCE:
                yield from self._tables()
        yield from self._tables()
        if self._run_id:
            self.report.read += 1
            yield self._run()
        self._remarks["collectives were under way at the end"] += sum(
            bool(tensor.begun) for tensor in self._tensors.values()
        )
        self.report.remark(self._remarks)

    def _take(self, event: Mapping[str, object]) -> None:
        phase, process = event["ph"], _number(event.get("pid", 0))
        if phase == "M":
            self._register(process, event)
        elif phase in ("B", "E", "X"):
            self._happened(self._tensors[process], str(phase), event)
        elif phase != "i":
            raise MalformedError(f"phase {str(phase)[:20]!r}")

    def _register(self, process: int, event: Mapping[str, object]) -> None:
        facts = event.get("args")
        if event.get("name") != "process_name" or not isinstance(facts, dict):
            return
        if START in facts:
            start_us = _number(facts[START])
            if not EARLIEST_SECONDS * 10**6 <= start_us <= LATEST_SECONDS * 10**6:
                raise MalformedError(f"{START} {start_us} is not between 2001 and 2262")
            self._start_us = start_us
        else:
            self._tensors[process] = _Tensor(str(facts["name"]))

    def _happened(self, tensor: _Tensor, phase: str, event: Mapping[str, object]) -> None:
        at_us = _number(event["ts"])
        if at_us > LATEST_SECONDS:  # 68 years in microseconds: far more than any training takes
            raise MalformedError(f"ts {at_us} is longer than a timeline")
        self._last_us = max(self._last_us, at_us)
        if phase == "B":
            self._begin(tensor, str(event["name"]), at_us)
        elif phase == "X":
            rank = _number(event["name"])
            tensor.ready[rank] = at_us
            self._ranks.add(rank)
        else:
            facts = event.get("args")
            self._end(tensor, at_us, facts if isinstance(facts, dict) else {})

    def _begin(self, tensor: _Tensor, name: str, at_us: int) -> None:
        if name.startswith("NEGOTIATE_"):
            tensor.turn += 1
            tensor.ready = {}
        tensor.begun.append((name, at_us))

    def _end(self, tensor: _Tensor, at_us: int, facts: Mapping[str, object]) -> None:
        if not tensor.begun:
            raise MalformedError("an end without a beginning")
        name, begun_us = tensor.begun.pop()
        labels = labels_text({"run_id": self._run_id, "tensor": tensor.name[:500], "turn": str(max(tensor.turn, 0))})
        what: dict[str, Scalar] = {"node": self.context.node, "device": "", "name": name[:100], "labels": labels}
        self._row(SERIES, begun_us, **what, value=(at_us - begun_us) / 1e6, kind="gauge", unit="s")
        if tensor.begun or name.startswith("NEGOTIATE_"):
            return
        self._remarks[
            "collectives without any rank's arrival (HOROVOD_CACHE_CAPACITY=0 records them)"
        ] += not tensor.ready
        for rank, ready_us in tensor.ready.items():
            self._row(
                COLLECTIVE,
                ready_us,
                run_id=self._run_id,
                rank=rank,
                step=tensor.turn,
                sequence=0,
                duration_seconds=(at_us - ready_us) * MICROSECOND if rank == 0 and at_us >= ready_us else None,
                size_bytes=_size(facts),
                operation=OPERATIONS.get(name, name.lower()[:100]),
                group=tensor.name[:500],
            )
        tensor.ready = {}

    def _row(self, metric_set: MetricSet, at_us: int, **columns: Scalar) -> None:
        begin_us = self._start_us or 0
        for name, value in ({"ts_ns": (begin_us + at_us) * MICROSECOND} | columns).items():
            self._rows[metric_set.name][name].append(value)
        self.report.read += 1

    def _tables(self) -> Iterator[pa.Table]:
        for metric_set in (COLLECTIVE, SERIES):
            if columns := self._rows.pop(metric_set.name, None):
                yield to_table(metric_set, columns)

    def _open(self, event: Mapping[str, object]) -> None:
        """Begin the run with its first event; in old timelines, the last one is from the file's last change."""
        plain = self.path.name.removesuffix(".gz")
        named = [tensor.name for tensor in self._tensors.values()]
        self._run_id = imported_id("horovod", self.context.system, plain, self._start_us, *named, event.get("ts"))
        if self._start_us is None:
            self._is_placed = True
            self._start_us = changed_ns(self.path) // MICROSECOND - _longest(self.path)
            if self._start_us < EARLIEST_SECONDS * 10**6:
                raise MalformedError(f"{self.path}: begins before 2001, if it ends when it was changed")

    def _run(self) -> Run:
        begin_us = self._start_us or 0
        tags = {
            "read_from": "horovod",
            "arrivals_from": "rank 0: when it was notified that a rank was ready, once in each of its cycles",
            "steps_from": "turns of each tensor: Horovod knows no steps",
        }
        if self._is_placed:
            tags["time_from"] = "the timeline's durations, back from the file's modification time"
            self.report.notes.append(f"time_from: {tags['time_from']}")
        return Run(
            self._run_id,
            self.context.workload,
            self.context.system,
            RunState.LOST,
            world_size=len(self._ranks) if max(self._ranks, default=-1) + 1 == len(self._ranks) > 0 else None,
            nodes=(self.context.node,) if self.context.node else (),
            started_ns=begin_us * MICROSECOND,
            ended_ns=(begin_us + self._last_us) * MICROSECOND,
            tags=tags,
        )


def events(path: Path, report: Report) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the objects of the array with the numbers of their lines; the array may lack its end.

    All but the first ones are in one line. Raises: UnavailableError, MalformedError (too large).
    """
    decoder, number, rest = json.JSONDecoder(), 1, ""
    with Bytes(path, report) as stream:
        while block := stream.take(BLOCK_BYTES):
            rest += block.decode("ascii", "replace")
            place = 0
            while (begin := rest.find("{", place)) >= 0:
                try:
                    event, end = decoder.raw_decode(rest, begin)
                except (json.JSONDecodeError, RecursionError):
                    end = _next_object(rest, begin)
                    if end < 0 and len(rest) - begin < EVENT_LIMIT:
                        break
                    report.skip(number, rest[begin : begin + 200], "no JSON")
                    end = len(rest) if end < 0 else end
                else:
                    yield number, event
                number += rest.count("\n", place, end)
                place = end
            rest = rest[begin:] if begin >= 0 else ""
    if rest.strip(" \r\n,]"):
        report.skip(number, rest[:200], "the last event is cut short, or still being written")


def _next_object(text: str, begin: int) -> int:
    """Return the beginning of the next event, if there is one: events contain at most one object, their arguments."""
    match = re.compile(r"\}\s*,\s*(?=\{)").search(text, begin)
    return match.end() if match else -1


def _longest(path: Path) -> int:
    """Return the latest time in the timeline, in microseconds since its start."""
    latest = 0
    for _, event in events(path, Report("", "")):
        ts_us = event.get("ts")
        if type(ts_us) is int and latest < ts_us <= LATEST_SECONDS:
            latest = ts_us
    return latest


def _number(value: object) -> int:
    """Return a count as JSON has it, or a rank as the name of a tick. Raises: MalformedError."""
    if type(value) is str and re.fullmatch("[0-9]{1,9}", value):
        return int(value)
    if type(value) is int and 0 <= value < 1 << 62:
        return value
    raise MalformedError(f"expected a number, found {str(value)[:40]!r}")


def _size(facts: Mapping[str, object]) -> int | None:
    """Return the bytes of a tensor, if its type and shape are given."""
    dtype, shape = DTYPE.fullmatch(str(facts.get("dtype"))), SHAPE.fullmatch(str(facts.get("shape")))
    if dtype is None or shape is None:
        return None
    size = prod(int(dimension) for dimension in (shape[1] or "1").split(",")) * int(dtype[1]) // 8
    return size if size < 1 << 62 else None


class HorovodReader:
    """Runs, arrivals and activities of a Horovod timeline."""

    name: ClassVar[str] = "horovod"
    description: ClassVar[str] = "timeline of Horovod (HOROVOD_TIMELINE): arrivals of ranks, activities"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether a negotiation begins in the head of an array of events."""
        text = plain_head(head)
        return bool(BEGINNING.match(text)) and any(
            BEGIN.search(part) and NEGOTIATION.search(part) for part in text.split("}")
        )

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Record]:
        """Yield the run, its collectives and activities. Raises: MalformedError, UnavailableError."""
        return Timeline(path, report, context).records()
