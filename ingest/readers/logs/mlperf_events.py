"""Events of MLPerf's training logs, picked out of a job's other output.

Source: github.com/mlcommons/logging: mlperf_logging/mllog/mllog.py (`:::MLLOG`, since v0.7) and
mlperf_logging/compliance_checker/mlp_parser (`:::MLL` of v0.6, `:::MLPv0.5.0` of v0.5); `:::SYSJSON` (the system's
description) and `:::DLPAL` (container, Slurm job, number of nodes, node list) are echoed by the batch scripts in
mlcommons/training_results_v*, benchmarks/*/implementations/*/run.sub.
"""

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

from crosswind.data.schema import hostlist
from crosswind.data.schema.errors import InvalidInputError, MalformedError
from crosswind.ingest.reader.lines import Block, blocks
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.clock import EARLIEST_SECONDS, LATEST_SECONDS

MARK = re.compile(rb":::(MLLOG|MLL|MLPv0\.5\.[0-9]+|SYSJSON|DLPAL)[ \t]+")
BEGINNING = re.compile(  # at a line's start, or behind a launcher's label: not quoted in a text or a program
    r"^(?:[^\"'`\n]{0,200}[\s:>\]])?:::"
    r'(?:MLLOG[ \t]{1,9}\{(?=[^\n]{0,1000}"key" ?:)(?=[^\n]{0,1000}"time_ms" ?:)'
    r"|MLL[ \t]{1,9}[0-9.]{10,30} \w{1,100} ?:|MLPv0\.5\.[0-9]{1,9}[ \t]{1,9}\w{1,100} [0-9.]{10,30} )",
    re.MULTILINE,
)
SYSTEM, JOB = "(SYSJSON)", "(DLPAL)"  # in brackets, as no key of an event is
POSITIONS = ("samples_count", "epoch_num", "step_num", "epoch", "step", "first_epoch_num", "current_iter_num")
POSITION_LIMIT = 1 << 62
MS = 1_000_000  # ns
EARLIEST_NS, LATEST_NS = EARLIEST_SECONDS * 10**9, LATEST_SECONDS * 10**9

_NAME = re.compile(r"[\w./:-]{1,100}")
_OF_V06 = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?) (\w{1,100}) ?:\s*(.+)")
_OF_V05 = re.compile(r"\b(\w{1,100}) ([0-9]{1,12}(?:\.[0-9]{1,12})?) \([^()]*:[0-9]+\) (\w{1,100}) ?(?::\s*(.+))?")
_OF_JOB = re.compile(r"(?<!\S)\S{1,300} ([0-9]{1,20}) ([0-9]{1,6}) ([^\s']+)")
_RANK = re.compile(rb"\s*(?:([0-9]{1,7}): ?|\[([0-9]{1,7})\] ?|\[[0-9]+,([0-9]{1,7})\]<std(?:out|err)>: ?)")
_DECODER = json.JSONDecoder()


class Event(NamedTuple):
    """One event of a log; `time_ns` is None if the log has no possible time."""

    line: int
    raw: bytes  # from after the mark on
    rank: int
    time_ns: int | None
    key: str
    value: object
    metadata: Mapping[str, object]
    benchmark: str = ""  # lines of v0.5 name it

    @property
    def text(self) -> str:
        """Return the beginning of the event's text."""
        return self.raw[:400].decode(errors="ignore")

    @property
    def instance(self) -> str:
        """Return which of several models trained side by side logged it; empty if there is one."""
        instance_id = self.metadata.get("instance_id", self.metadata.get("instance", ""))
        return str(instance_id)[:100] if instance_id != "" and isinstance(instance_id, int | str) else ""

    @property
    def position(self) -> tuple[str, float] | None:
        """Return the training's progress by the first of POSITIONS that the event has, with its name."""
        for name in POSITIONS:
            if name in self.metadata:
                at = number(self.metadata[name])
                if at is not None and 0 <= at < POSITION_LIMIT:
                    return name, at
        return None


class _EventJson(Struct):
    """The object after `:::MLLOG`, as the format has it."""

    key: str
    time_ms: int
    value: object = None
    metadata: dict[str, object] = {}


_EVENT_JSON = Decoder(_EventJson)


def number(value: object) -> float | None:
    """Return the value, if it is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer of more than 308 digits
        return None


def events(path: Path, report: Report) -> Iterator[Event]:
    """Yield the events in the file's order; lines that only begin like one go to the report. Raises: as `blocks`."""
    for block in blocks(path, report, is_whole=_is_whole):
        for line, prefix, kind, rest in _marked(block):
            if prefix.startswith(b"+ "):  # the shell's trace of an echo
                continue
            try:
                yield _event(line, _rank(prefix) if prefix else 0, kind, rest)
            except (ValueError, RecursionError) as error:
                report.skip(line, rest[:400].decode(errors="ignore"), f"no event: {error!s:.200}")
            except (MalformedError, InvalidInputError) as error:
                report.skip(line, rest[:400].decode(errors="ignore"), str(error))


def _is_whole(line: bytes) -> bool:
    """Return whether the object at a line's end is closed."""
    return line.rstrip().endswith(b"}") and line.count(b"{") == line.count(b"}")


def _marked(block: Block) -> Iterator[tuple[int, bytes, bytes, bytes]]:
    """Yield line number, the text before the line's first mark, the mark, and the text up to the next one."""
    data, line, line_start = block.data, block.number, 0
    prefix, line_end = b"", -1
    here, ahead = itertools.tee(MARK.finditer(data))
    next(ahead, None)
    for match, following in itertools.zip_longest(here, ahead):
        start, end = match.span()
        if start > line_end:
            before, line_start = line_start, data.rfind(b"\n", 0, start) + 1
            line += data.count(b"\n", before, line_start)
            line_end = data.find(b"\n", end)
            prefix = data[line_start:start]
        stop = line_end if following is None else min(line_end, following.start())
        yield line, prefix, match[1], data[end:stop]


def _rank(prefix: bytes) -> int:
    """Return the process, if a launcher put its number before the line: `3: `, `[3] `, `[1,3]<stdout>:`."""
    match = _RANK.fullmatch(prefix[:64])
    return int(next(filter(None, match.groups()))) if match else 0


def _event(line: int, rank: int, kind: bytes, rest: bytes) -> Event:
    if kind != b"MLLOG":
        return _of_others(line, rank, kind, rest)
    try:
        event = _usual(rest)
    except MsgspecError:  # followed by another process's text, a time that is no integer, NaN
        return _checked(Event(line, rest, rank, *_unusual(rest.decode())))
    return _checked(Event(line, rest, rank, _possible(event.time_ms * MS), event.key, event.value, event.metadata))


def _usual(rest: bytes) -> _EventJson:
    """Decode the usual form. Raises: MsgspecError."""
    if b"\\u" in rest:  # may not be valid UTF-8
        raise MsgspecError
    return _EVENT_JSON.decode(rest)


def _unusual(rest: str) -> tuple[int | None, str, object, dict[str, object]]:
    event = _object(rest.strip())
    return _from_ms(event.get("time_ms")), *_parts(event)


def _of_others(line: int, rank: int, kind: bytes, raw: bytes) -> Event:
    rest = raw.decode().strip()
    if kind == b"SYSJSON":
        return Event(line, raw, rank, None, SYSTEM, None, _object(rest))
    if kind == b"DLPAL":
        return Event(line, raw, rank, None, JOB, None, _job(rest))
    if kind == b"MLL":
        seconds, key, value = _matched(_OF_V06, rest)
        return Event(line, raw, rank, _from_seconds(seconds), *_parts({"key": key, **_object(value)}))
    benchmark, seconds, key, value = _matched(_OF_V05, rest)
    return Event(line, raw, rank, _from_seconds(seconds), key, *_of_v05(value), benchmark)


def _checked(event: Event) -> Event:
    if not _NAME.fullmatch(event.key):
        raise MalformedError(f"key {event.key[:50]!r} is no name")
    return event


def _object(text: str) -> dict[str, object]:
    document = _json(text)
    if not isinstance(document, dict):
        raise MalformedError(f"expected a JSON object, found {text[:50]!r}")
    return document


def _json(text: str) -> object:
    """Return the value at the text's beginning; the rest may be another process's. Raises: ValueError."""
    document: object = _DECODER.raw_decode(text)[0]
    if "\\u" in text and "\\u0000" in _encoded(document):
        raise MalformedError("holds a zero byte, which no text does")
    return document


def _encoded(value: object) -> str:
    """Return JSON text that is valid UTF-8. Raises: UnicodeEncodeError for half a surrogate pair."""
    return json.dumps(value, ensure_ascii=False).encode().decode()


def _parts(event: Mapping[str, object]) -> tuple[str, object, dict[str, object]]:
    key, metadata = event.get("key"), event.get("metadata") or {}
    if not isinstance(key, str) or not isinstance(metadata, dict):
        raise MalformedError("expected a key and metadata as an object")
    return key, event.get("value"), metadata


def _of_v05(text: str | None) -> tuple[object, dict[str, object]]:
    value = _json(text) if text else None
    if not isinstance(value, dict):
        return value, {}
    return value.pop("value", None), value


def _matched(pattern: re.Pattern[str], text: str) -> tuple[str, ...]:
    match = pattern.match(text)
    if match is None:
        raise MalformedError("no event of any known version")
    return match.groups()


def _job(text: str) -> dict[str, object]:
    job_id, count, nodes = _matched(_OF_JOB, text)
    expanded = hostlist.expand(nodes)
    if len(expanded) != int(count):
        raise MalformedError(f"{count} nodes, but the list {nodes[:100]!r} has {len(expanded)}")
    return {"job_id": job_id, "nodes": expanded}


def _from_ms(value: object) -> int | None:
    milliseconds = number(value)
    if milliseconds is None:
        return None
    return _possible(value * MS if isinstance(value, int) else round(milliseconds * 1000) * 1000)


def _from_seconds(text: str) -> int | None:
    return _possible(int(Decimal(text) * 10**9))


def _possible(time_ns: int) -> int | None:
    return time_ns if EARLIEST_NS <= time_ns <= LATEST_NS else None
