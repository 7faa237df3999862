"""Looks for step lines in a copy of a program's output; a process of its own, so that no pattern holds that up."""

import logging
import re
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from select import select
from types import FrameType
from typing import BinaryIO

from crosswind.data.errors import ProjectError
from crosswind.data.metric import Scalar
from crosswind.data.steps import PROGRESS, STEP
from crosswind.ingest.relay import HEADER
from crosswind.ingest.spool import SpoolWriter
from crosswind.ingest.step_lines import MAX_LINE, StepCounter, TimedStep, line_pattern, told_by

FLUSH_SECONDS = 0.5
MATCH_SECONDS = 0.1
MAX_SLOW = 10  # lines that take longer, until the pattern is given up
LINE_END = re.compile(rb"[\r\n]")  # progress bars end theirs by a carriage return
logger = logging.getLogger("crosswind")


@dataclass
class LineSplitter:
    """The lines of one stream, whole or as far as they are looked at."""

    _begun: bytearray = field(default_factory=bytearray)
    _is_torn: bool = False

    def split(self, content: bytes) -> Iterator[bytes]:
        """The lines that end within the content."""
        *ended, begun = LINE_END.split(content)
        for line in ended:
            self._add(line)
            if self._begun and not self._is_torn:
                yield bytes(self._begun)
            self._begun.clear()
            self._is_torn = False
        self._add(begun)

    def tear(self) -> None:
        """Something was left out here."""
        self._begun.clear()
        self._is_torn = True

    def _add(self, part: bytes) -> None:
        self._begun += part[: MAX_LINE - len(self._begun)]


class LineMatcher:
    """Steps and values told by lines, into the spool."""

    def __init__(self, spool: Path, run_id: str, pattern: str) -> None:
        known = line_pattern(pattern)
        self._expression = re.compile(known.expression)
        self._counter = StepCounter(known.per_epoch)
        self._spool, self._run_id = spool, run_id
        self._found: list[TimedStep] = []
        self._slow = 0

    def look(self, line: bytes, ts_ns: int) -> None:
        """Takes what a line tells; must run in the main thread. One that takes too long is passed over."""
        if self._slow >= MAX_SLOW:
            return
        try:
            match = self._search(line.decode("utf-8", "replace"))
        except TimeoutError:
            self._slow += 1
            if self._slow == MAX_SLOW:
                logger.warning("step lines are not looked for any more: the pattern took too long on %d", MAX_SLOW)
            return
        if match and (told := told_by(match)):
            self._found.append(self._counter.take(told, ts_ns))

    def _search(self, line: str) -> re.Match[str] | None:
        signal.setitimer(signal.ITIMER_REAL, MATCH_SECONDS)
        try:
            return self._expression.search(line)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def write(self, writer: SpoolWriter) -> None:
        """Appends what was found. Where ranks of this run tell of their steps themselves, only the values are ours."""
        found, self._found = self._found, []
        timed = [step for step in found if step.seconds is not None]
        if timed and not any(self._spool.glob(f"*.{self._run_id}*-rank*")):
            ends = [(step.ts_ns, round((step.seconds or 0) * 1e9)) for step in timed]
            keys = self._keys(timed, [end - duration for end, duration in ends])
            writer.append_rows(STEP, {**keys, "duration_seconds": [duration for _, duration in ends]})
        if values := [(step, name, value) for step in found for name, value in step.values.items()]:
            keys = self._keys([step for step, _, _ in values], [step.ts_ns for step, _, _ in values])
            named: dict[str, list[Scalar]] = {
                "name": [name for _, name, _ in values],
                "value": [value for _, _, value in values],
            }
            writer.append_rows(PROGRESS, {**keys, **named})

    def _keys(self, steps: list[TimedStep], ts_ns: list[int]) -> dict[str, list[Scalar]]:
        return {
            "ts_ns": list(ts_ns),
            "run_id": [self._run_id] * len(steps),
            "rank": [step.rank for step in steps],
            "step": [step.number for step in steps],
        }


def follow(copy: BinaryIO, matcher: LineMatcher, writer: SpoolWriter) -> None:
    """Looks at everything that comes until the copy ends. Raises: UnavailableError when the disk refuses."""
    splitters: dict[int, LineSplitter] = {}
    written = time.monotonic()
    for ts_ns, source, content in _blocks(copy):
        splitter = splitters.setdefault(source, LineSplitter())
        for line in splitter.split(content):
            matcher.look(line, ts_ns)
        if not content:
            splitter.tear()
        if time.monotonic() - written > FLUSH_SECONDS:
            matcher.write(writer)
            written = time.monotonic()
    for splitter in splitters.values():
        for line in splitter.split(b"\n"):
            matcher.look(line, time.time_ns())
    matcher.write(writer)


def _blocks(copy: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """When something came, from which source, and what; again and again nothing of no source, while nothing comes."""
    while True:
        if not select([copy], [], [], FLUSH_SECONDS)[0]:
            yield 0, -1, b""
            continue
        header = _exactly(copy, HEADER.size)
        if not header:
            return
        ts_ns, source, size = HEADER.unpack(header)
        yield ts_ns, source, _exactly(copy, size)


def _exactly(copy: BinaryIO, size: int) -> bytes:
    """So many bytes; none where the copy ends before."""
    content = b""
    while len(content) < size:
        part = copy.read(size - len(content))
        if not part:
            return b""
        content += part
    return content


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError


def main() -> None:
    """The process: spool, run and pattern are its arguments, the copy its input."""
    spool, run_id, pattern = sys.argv[1:]
    signal.signal(signal.SIGALRM, _too_long)
    try:
        with SpoolWriter(Path(spool), f"{run_id}-lines") as writer, open(0, "rb", buffering=0) as copy:
            follow(copy, LineMatcher(Path(spool), run_id, pattern), writer)
    except ProjectError as error:
        logger.warning("step lines are not recorded: %s", error)


if __name__ == "__main__":
    main()
