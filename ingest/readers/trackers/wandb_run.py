"""Runs in W&B's own files on disk, `wandb/*run-*/run-<id>.wandb`."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from crosswind.data.schema import hostlist
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.facts import Facts, count_fact, text_fact
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.run import Run, RunState
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.binary import Bytes, plain_bytes
from crosswind.ingest.readers.protobuf import Message
from crosswind.ingest.readers.scalars import flat, storable
from crosswind.ingest.readers.trackers.progress_rows import SECOND_NS, Value, fault_of, nanoseconds, progress
from crosswind.ingest.readers.trackers.wandb_log import BEGINNING, records
from crosswind.ingest.readers.trackers.wandb_samples import Place, samples

HISTORY, CONFIG, RUN, EXIT, HEADER, ENVIRONMENT = 2, 5, 17, 18, 21, 26  # fields of wandb_internal.Record
PYTHON, GPU, GPUS, CPU, NVIDIA, CUDA, AMD, SLURM = 2, 18, 19, 22, 24, 25, 26, 27  # of EnvironmentRecord, once written
NVIDIA_BYTES, AMD_SERIES, CPU_MODEL = 2, 8, 3  # of GpuNvidiaInfo, GpuAmdInfo, CpuInfo
KEY, NESTED_KEY, VALUE_JSON = 1, 2, 16  # of HistoryItem, ConfigItem
BOOLEAN, INTEGER, NUMBER, TEXT, JSON = 4, 5, 6, 7, 8  # of HistoryItem, instead of VALUE_JSON
NAME = re.compile(r"run-([0-9A-Za-z_-]{1,128})\.wandb(?:\.gz)?")  # of the file, with the run's id
OWN = "_"  # prefix of keys that W&B itself adds


@dataclass
class _RunFacts:
    """The facts of a run in its records, in addition to the history."""

    wandb_id: str = ""
    project: str = ""
    name: str = ""
    host: str = ""
    python: str = ""
    started_ns: int | None = None
    last_ns: int | None = None
    exit_code: int | None = None
    configuration: dict[str, object] = field(default_factory=dict)
    tags: list[str] = field(default_factory=list)
    job_id: str | None = None
    nodes: tuple[str, ...] = ()
    system: Facts = field(default_factory=Facts)
    others: int = 0


@dataclass(frozen=True)
class WandbReader:
    """One run per file: its history as progress, its config as configuration, system metrics as series."""

    name: ClassVar[str] = "wandb"
    description: ClassVar[str] = "W&B's local record of a run, run-<id>.wandb (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether the file begins like a record log."""
        return plain_bytes(head).startswith(BEGINNING)

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Run | pa.Table]:
        """Yield the values, the system's samples, then the run. Raises: MalformedError, UnavailableError.

        Source: wandb/proto/wandb_internal.proto, "Persistent on disk data".
        """
        facts = _RunFacts(wandb_id=match[1] if (match := NAME.fullmatch(path.name)) else "")
        with Bytes(path, report) as stream:
            values = _values(stream, report, facts)
            first = next(values, None)  # the run's own record, if it is whole, comes before it
            run_id = imported_id(self.name, context.system, facts.wandb_id)
            if first is not None:
                yield from progress(run_id, _with(first, values), report)
        if not facts.wandb_id:
            raise MalformedError(f"{path}: no record has a run, and the file is not called run-<id>.wandb")
        if facts.others:
            report.notes.append(f"{facts.others} texts, media and other values that are no numbers: left out")
        with Bytes(path, report) as stream:
            yield from samples(stream, Place(storable(facts.host) or context.node, facts.wandb_id), report)
        report.read += 1
        yield _run(run_id, facts, context)


def _run(run_id: str, facts: _RunFacts, context: Context) -> Run:
    state = RunState.LOST if facts.exit_code is None else RunState.FAILED if facts.exit_code else RunState.COMPLETED
    tags = {"imported_from": WandbReader.name, "imported_id": facts.wandb_id, "name": facts.name, "host": facts.host}
    tags["tags"] = ", ".join(facts.tags)
    configuration = {name: value for name, value in facts.configuration.items() if not name.startswith("_wandb")}
    return Run(
        run_id,
        storable(facts.project, 200) or context.workload or "unknown",
        context.system,
        state,
        configuration=flat(configuration),
        job_id=facts.job_id and storable(facts.job_id, 64),
        nodes=facts.nodes,
        started_ns=facts.started_ns,
        ended_ns=facts.last_ns,
        exit_code=facts.exit_code,
        software={"python": storable(facts.python)} if facts.python else {},
        facts=facts.system,
        tags={name: storable(text) for name, text in tags.items() if text},
    )


def _with(first: Value, others: Iterator[Value]) -> Iterator[Value]:
    yield first
    yield from others


def _values(stream: Bytes, report: Report, facts: _RunFacts) -> Iterator[Value]:
    for number, data in records(stream, report):
        try:
            record = Message.parsed(data)
            _take(record, facts)
            history = record.message(HISTORY)
            if history:
                yield from _of_step(history, facts)
        except MalformedError as error:
            report.skip(number, "", f"record {number}: {error}")


def _take(record: Message, facts: _RunFacts) -> None:
    """Take the facts of a record. Raises: MalformedError."""
    if run := record.message(RUN):
        _take_run(run, facts)
    if config := record.message(CONFIG):
        _take_config(config, facts)
    if environment := record.message(ENVIRONMENT):
        facts.python = environment.text(PYTHON).removeprefix("CPython ") or facts.python
        _take_slurm(environment, facts)
        facts.system = _system(environment).over(facts.system)
    if ending := record.message(EXIT):
        facts.exit_code = ending.whole(1) or 0


def _take_run(run: Message, facts: _RunFacts) -> None:
    facts.wandb_id, facts.project = run.text(1) or facts.wandb_id, run.text(3) or facts.project
    facts.name, facts.host = run.text(8) or facts.name, run.text(13) or facts.host
    facts.tags = [tag.decode(errors="replace") for tag in run.repeated(10)]
    if config := run.message(4):
        _take_config(config, facts)
    if start := run.message(17):
        started = Value((start.whole(1) or 0) * SECOND_NS + (start.whole(2) or 0), 0, "start_time", 0.0)
        facts.started_ns = None if fault_of(started) else started.ts_ns


def _take_slurm(environment: Message, facts: _RunFacts) -> None:
    """Take the job and its nodes from Slurm's variables."""
    entries = map(Message.parsed, environment.repeated(SLURM))
    variables = {entry.text(1): entry.text(2) for entry in entries}
    facts.job_id = variables.get("job_id") or facts.job_id
    facts.nodes = hostlist.expand(variables.get("job_nodelist", "")) or facts.nodes


def _system(environment: Message) -> Facts:
    """Return the facts about the host in one of the records on it, each of which has some. Raises: MalformedError."""
    nvidia, amd = (list(map(Message.parsed, environment.repeated(field))) for field in (NVIDIA, AMD))
    model = environment.text(GPU) or (nvidia[0].text(1) if nvidia else amd[0].text(AMD_SERIES) if amd else "")
    cpu = environment.message(CPU)
    return Facts.of_valid(
        {
            "accelerator": text_fact(model),
            "accelerators_per_node": count_fact(environment.whole(GPUS) or len(nvidia or amd) or None),
            "accelerator_memory_bytes": nvidia[0].whole(NVIDIA_BYTES) if nvidia else None,
            "processor": text_fact(cpu.text(CPU_MODEL)) if cpu else None,
            "cuda": text_fact(environment.text(CUDA)),
        }
    )


def _take_config(config: Message, facts: _RunFacts) -> None:
    for encoded in config.repeated(1):
        name, value = _item(Message.parsed(encoded))
        facts.configuration[name] = value
    for encoded in config.repeated(2):
        facts.configuration.pop(_name(Message.parsed(encoded)), None)


def _of_step(history: Message, facts: _RunFacts) -> list[Value]:
    """Return the numbers of one step. Raises: MalformedError."""
    items = dict(_item(Message.parsed(encoded)) for encoded in history.repeated(1))
    numbered = history.message(2)
    step = numbered.whole(1) or 0 if numbered else items.get("_step")
    seconds = items.get("_timestamp")
    if not isinstance(step, int) or isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise MalformedError(f"history without a step or a time: {step!r:.40}, {seconds!r:.40}")
    ts_ns = nanoseconds(float(seconds))
    values = []
    for name, number in _numbers({name: value for name, value in items.items() if not name.startswith(OWN)}, "", facts):
        value = Value(ts_ns, step, name, number)
        if fault := fault_of(value):
            raise MalformedError(fault)
        values.append(value)
    facts.last_ns = max(facts.last_ns or 0, ts_ns) if values else facts.last_ns
    return values


def _numbers(value: object, path: str, facts: _RunFacts) -> Iterator[tuple[str, float]]:
    """Yield numbers by their path; an object with a `_type` is an image, a table or similar."""
    if isinstance(value, dict) and "_type" not in value:
        for key, inner in value.items():
            yield from _numbers(inner, f"{path}.{key}" if path else str(key), facts)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value) if isinstance(value, float) or abs(value) < 1 << 1000 else math.inf
    else:
        facts.others += 1


def _item(item: Message) -> tuple[str, object]:
    """Return name and value. Raises: MalformedError."""
    value: object = None
    if text := item.text(VALUE_JSON) or item.text(JSON):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise MalformedError(f"{_name(item)!r:.80}: no JSON: {error}") from error
    elif NUMBER in item.fields:
        value = item.real(NUMBER)
    elif INTEGER in item.fields:
        value = item.whole(INTEGER)
    elif BOOLEAN in item.fields:
        value = bool(item.whole(BOOLEAN))
    elif TEXT in item.fields:
        value = item.text(TEXT)
    return _name(item), value


def _name(item: Message) -> str:
    return item.text(KEY) or ".".join(part.decode(errors="replace") for part in item.repeated(NESTED_KEY))
