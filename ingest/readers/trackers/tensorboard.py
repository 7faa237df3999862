"""Scalars and hyperparameters from TensorBoard's event files."""

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.trial import Parameter
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.binary import Bytes, plain_bytes
from crosswind.ingest.readers.protobuf import Message
from crosswind.ingest.readers.scalars import storable
from crosswind.ingest.readers.trackers.progress_rows import Value, fault_of, nanoseconds, progress
from crosswind.ingest.readers.trackers.tfrecord import is_record_file, records

FORMATS = {1: "<f", 2: "<d", 3: "<i", 9: "<q"}  # DT_FLOAT, DT_DOUBLE, DT_INT32, DT_INT64
FIELDS = {1: 5, 2: 6, 3: 7, 9: 10}  # the field with a tensor's values of that type, unless in tensor_content
WHOLE = (3, 9)
HYPERPARAMETERS = "_hparams_/session_start_info"
ENDED = "_hparams_/session_end_info"
END_STATES = {1: RunState.COMPLETED, 2: RunState.FAILED, 3: RunState.RUNNING}  # STATUS_SUCCESS, _FAILURE, _RUNNING


@dataclass
class _RunFacts:
    """The facts of a run in its events, in addition to scalars."""

    first_ns: int = 0
    last_ns: int = 0
    version: str = ""
    state: RunState = RunState.LOST
    configuration: dict[str, Parameter] = field(default_factory=dict)
    others: int = 0


@dataclass(frozen=True)
class TensorBoardReader:
    """One run per event file: its scalars as progress, its hyperparameters as configuration."""

    name: ClassVar[str] = "tensorboard"
    description: ClassVar[str] = "TensorBoard event file, events.out.tfevents.* (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether the file has the name of an event file, and begins with a record."""
        return "tfevents" in path.name and is_record_file(plain_bytes(head))

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Run | pa.Table]:
        """Yield the scalars, then their run. Raises: MalformedError, UnavailableError.

        Source: tensorflow/core/util/event.proto and framework/summary.proto; tensorboard/plugins/hparams.
        """
        facts = _RunFacts()
        with Bytes(path, report) as stream:
            values = self._values(stream, report, facts)
            first = next(values, None)
            run_id = imported_id(self.name, context.system, path.name.removesuffix(".gz"), facts.first_ns)
            if first is not None:
                yield from progress(run_id, _with(first, values), report)
        if facts.others:
            report.notes.append(f"{facts.others} texts, images, histograms and tensors are no scalars: left out")
        if first is None and not facts.configuration:
            report.notes.append("holds no scalars: no run")
            return
        report.read += 1
        yield Run(
            run_id,
            context.workload or "unknown",
            context.system,
            facts.state,
            configuration=facts.configuration,
            started_ns=facts.first_ns or None,
            ended_ns=facts.last_ns or None,
            tags={"imported_from": self.name, "folder": path.resolve().parent.name},
        )

    def _values(self, stream: Bytes, report: Report, facts: _RunFacts) -> Iterator[Value]:
        """Yield the scalars in the file's order."""
        for number, data in records(stream, report):
            try:
                yield from _scalars(Message.parsed(data), facts)
            except MalformedError as error:
                report.skip(number, "", f"record {number}: {error}")


def _with(first: Value, others: Iterator[Value]) -> Iterator[Value]:
    yield first
    yield from others


def _scalars(event: Message, facts: _RunFacts) -> list[Value]:
    """Return the scalars of one event. Raises: MalformedError."""
    ts_ns, step = nanoseconds(event.real(1) or 0.0), event.whole(2) or 0
    summary = event.message(5)
    values = []
    for encoded in summary.repeated(1) if summary else ():
        entry = Message.parsed(encoded)
        number = _number(entry)
        tag = entry.text(1)
        if number is not None:
            values.append(Value(ts_ns, step, tag, number))
        elif not _take_hyperparameters(tag, entry, facts):
            facts.others += 1
    for value in values:
        if fault := fault_of(value):
            raise MalformedError(fault)
    if not facts.first_ns:
        facts.first_ns = ts_ns
    facts.last_ns = max(facts.last_ns, ts_ns)
    return values


def _number(entry: Message) -> float | None:
    """Return a summary's value when it is one number: as such, or as a tensor without dimensions."""
    if (simple := entry.real(2)) is not None:
        return simple
    tensor = entry.message(8)
    if tensor is None or tensor.whole(1) not in FORMATS:
        return None
    shape = tensor.message(2)
    return None if shape is not None and (shape.repeated(2) or shape.whole(3)) else _tensor_number(tensor)


def _tensor_number(tensor: Message) -> float | None:
    kind = tensor.whole(1) or 0
    content, listed = tensor.data(4), tensor.fields.get(FIELDS[kind], [])
    if not content and kind in WHOLE and len(listed) == 1:
        return float(_varint_of(listed[0]))
    data = content or tensor.data(FIELDS[kind])
    if data is None or len(data) != struct.calcsize(FORMATS[kind]):
        return None
    return float(struct.unpack(FORMATS[kind], data)[0])


def _varint_of(value: int | bytes) -> int:
    """Return a whole number that is a field of its own or, packed, without a field's key."""
    message = Message.parsed(b"\x08" + value) if isinstance(value, bytes) else Message({1: [value]})
    return message.whole(1) or 0


def _take_hyperparameters(tag: str, entry: Message, facts: _RunFacts) -> bool:
    """Take an entry of the hyperparameters' plug-in. Return whether it is one."""
    if not tag.startswith("_hparams_/"):
        return False
    metadata = entry.message(9)
    plugin = metadata.message(1) if metadata else None
    content = plugin.message(2) if plugin else None
    start, end = (content.message(3), content.message(4)) if content else (None, None)
    if tag == HYPERPARAMETERS and start:
        facts.configuration |= dict(_hyperparameter(Message.parsed(encoded)) for encoded in start.repeated(1))
    if tag == ENDED and end:
        facts.state = END_STATES.get(end.whole(1) or 0, RunState.LOST)
    return True


def _hyperparameter(entry: Message) -> tuple[str, Parameter]:
    """Return name and value of an entry of the map of names to google.protobuf.Value."""
    value = entry.message(2)
    name = storable(entry.text(1))
    if value is None or 3 in value.fields:
        return name, storable(value.text(3)) if value else ""
    if (number := value.real(2)) is not None:
        return name, number if math.isfinite(number) else str(number)
    return name, bool(value.whole(4))
