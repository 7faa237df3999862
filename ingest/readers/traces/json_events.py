"""Events of a trace in JSON, as torch.profiler, Perfetto's and Chrome's tools write them: streamed, block by block.

A block ends where an event does: `},` before `{` is tried as such from the block's end on, and a block that decodes
shows that it was one, as neither a broken text nor a broken array does.
Source: "Trace Event Format", the Chromium project's document.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.binary import Bytes

BLOCK_BYTES = 1 << 20  # its events as objects take some ten times as much memory
HEAD_LIMIT = 64 << 20  # of what stands before the events: properties of devices, of process groups
EVENT_LIMIT = 64 << 20
ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
BORDER = re.compile(rb"\}\s*,(?=\s*\{)")
BROKEN = msgspec.DecodeError, UnicodeDecodeError, RecursionError
SKIPPED_LIMIT = 1 << 20
TRIED = 8  # borders of one block, or of one event
UNDECODED = 8  # blocks, from which on without a border that is one each entry is read on its own
BREAKS_OFF = "the JSON breaks off: what follows is not read (is it cut short, or still written?)"

Event = TypeVar("Event")


@dataclass
class TraceDocument(Generic[Event]):
    """A document's events, and what it states beside them, which is complete once the events are read."""

    stated: dict[str, Any]
    blocks: Iterator[list[Event]]


@dataclass(frozen=True)
class EventTypes(Generic[Event]):
    """The types as which events are read: the usual one, and one that takes odder values, at more cost."""

    usual: type[Event]
    odd: type[Event]
    needs_odd: Callable[[bytes], bool]  # whether events must be read as odd ones, by the document's beginning

    def of(self, head: bytes) -> list[type[Event]]:
        """Return the types to try, in their order."""
        return [self.odd] if self.needs_odd(head) else [self.usual, self.odd]


def document(
    stream: Bytes, types: EventTypes[Event], report: Report, *, block_bytes: int = BLOCK_BYTES
) -> TraceDocument[Event]:
    """Return the events of an object with `traceEvents`, or of a lone array; a block's are all of one type.

    Raises: MalformedError, UnavailableError.
    """
    head = stream.take(block_bytes)
    if head.lstrip()[:1] == b"[":
        return TraceDocument({}, _Blocks(stream, types.of(head), report, {}).of(head.lstrip()[1:], block_bytes))
    while not (match := ARRAY.search(head)):
        more = stream.take(block_bytes)
        if not more or len(head) > HEAD_LIMIT:
            raise MalformedError(f"{report.path}: no array traceEvents; expected a trace in Chrome's JSON format")
        head += more
    stated = _stated(head[: match.end()] + b"]}", report)
    blocks = _Blocks(stream, types.of(head), report, stated)
    return TraceDocument(stated, blocks.of(head[match.end() :], block_bytes))


def _stated(text: bytes, report: Report) -> dict[str, Any]:
    try:
        members = msgspec.json.decode(text)
    except BROKEN as error:
        raise MalformedError(f"{report.path}: {error} before traceEvents") from error
    del members["traceEvents"]
    return dict(members)


class _Blocks(Generic[Event]):
    def __init__(self, stream: Bytes, types: list[type[Event]], report: Report, stated: dict[str, Any]) -> None:
        self._stream, self._report, self._stated = stream, report, stated
        self._lists = [msgspec.json.Decoder(list[event]) for event in types]  # type: ignore[valid-type]
        self._one = msgspec.json.Decoder(types[-1])
        self._raw = msgspec.json.Decoder(list[msgspec.Raw])

    def of(self, text: bytes, block_bytes: int) -> Iterator[list[Event]]:
        while more := self._stream.take(max(block_bytes, len(text))):  # a long event is not tried over and over
            text += more
            cut = self._cut(text)
            if cut:
                events, text = cut
                yield events
            elif len(text) > UNDECODED * block_bytes:  # an entry in it is no JSON
                events, text = self._one_by_one(text)
                yield events
                if len(text) > EVENT_LIMIT:
                    raise MalformedError(f"{self._report.path}: no end of an event in {len(text)} bytes")
            if self._report.skipped > SKIPPED_LIMIT:
                raise MalformedError(
                    f"{self._report.path}: {self._report.skipped} entries that are no events; too many"
                )
        yield from self._last(text)

    def _cut(self, text: bytes) -> tuple[list[Event], bytes] | None:
        """Return the events of whole ones at the text's beginning, and the rest; None where no border was one."""
        end = len(text)
        for _ in range(TRIED):
            border = _last_border(text, end)
            if border is None:
                return None
            if (events := self._decoded(b"[%b]" % text[: border[0]])) is not None:
                return events, text[border[1] :]
            end = border[0] - 1
        return None

    def _last(self, text: bytes) -> Iterator[list[Event]]:
        """Yield the events of the document's end, and keep what stands after them."""
        for closing in (b'{"traceEvents":[%b' % text, b'{"traceEvents":[%b]}' % text.rstrip().rstrip(b",")):
            try:
                members = msgspec.json.decode(closing, type=dict[str, msgspec.Raw])
            except BROKEN:
                continue
            array = bytes(members.pop("traceEvents"))
            events = self._decoded(array)
            if events is None:  # damaged text, which went unnoticed so far
                events, _ = self._one_by_one(b"%b,{}" % array[1:-1])
            self._stated.update({name: msgspec.json.decode(value) for name, value in members.items()})
            yield events
            return
        if text.strip() in (b"]", b""):
            return
        if (rest := self._decoded(b"[" + text)) is not None:
            yield rest
        elif not (cut := self._cut(text)) and _last_border(text, len(text)):
            events, text = self._one_by_one(text)
            yield events
            yield from self._last(text)
        else:
            self._report.break_off(BREAKS_OFF)
            yield cut[0] if cut else []

    def _one_by_one(self, text: bytes) -> tuple[list[Event], bytes]:
        """Return the events of a text of which an entry is no JSON, and the rest; such entries are reported."""
        events: list[Event] = []
        ends = [(match.start() + 1, match.end()) for match in BORDER.finditer(text)]
        begin = first = 0
        while first < len(ends):
            for place, (end, after) in enumerate(ends[first : first + TRIED], first):
                with suppress(*BROKEN):  # or the border is within an event
                    events.append(self._one.decode(text[begin:end]))
                    begin, first = after, place + 1
                    break
            else:
                quoted = text[begin : ends[first][0]][:200].decode(errors="replace")
                self._report.skip(0, quoted, "an entry of traceEvents is no JSON")
                begin, first = ends[first][1], first + 1
        return events, text[begin:]

    def _decoded(self, text: bytes) -> list[Event] | None:
        """Return an array's events, without malformed ones, which are reported; None where it is no JSON."""
        for decoder in self._lists:
            try:
                return decoder.decode(text)
            except msgspec.ValidationError:
                continue
            except BROKEN:
                return None
        return self._each(text)

    def _each(self, text: bytes) -> list[Event] | None:
        try:
            raws = self._raw.decode(text)
        except BROKEN:
            return None
        events = []
        for raw in raws:
            try:
                events.append(self._one.decode(raw))
            except BROKEN as error:  # of its form, or deep
                self._report.skip(0, bytes(raw)[:200].decode(errors="replace"), str(error))
        return events


def _last_border(text: bytes, end: int) -> tuple[int, int] | None:
    """Return the end of the last event before another one, and of the comma after it."""
    while (place := text.rfind(b"}", 0, end)) >= 0:
        if match := BORDER.match(text, place):
            return place + 1, match.end()
        end = place
    return None
