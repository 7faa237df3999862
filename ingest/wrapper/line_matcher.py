"""The process that looks for step lines in a copy of a program's output, so that no pattern delays the output."""

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

from crosswind.data.schema.errors import ProjectError
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.steps import PROGRESS, STEP
from crosswind.ingest.reader.step_lines import MAX_LINE, StepCounter, TimedStep, line_pattern, step_report
from crosswind.ingest.spool.spool import SpoolWriter
from crosswind.ingest.wrapper.relay import HEADER

FLUSH_SECONDS = 0.5
MATCH_SECONDS = 0.1
MAX_SLOW = 10  # lines that may take longer before the pattern is given up
LINE_END = re.compile(rb"[\r\n]")  # progress bars end theirs by a carriage return
logger = logging.getLogger("crosswind")


@dataclass
class LineSplitter:
    """Splits one stream into lines; of long ones only the beginning is kept."""

    _begun: bytearray = field(default_factory=bytearray)
    _is_torn: bool = False

    def split(self, content: bytes) -> Iterator[bytes]:
        """Yield the lines that end within the content."""
        *ended, begun = LINE_END.split(content)
        for line in ended:
            self._add(line)
            if self._begun and not self._is_torn:
                yield bytes(self._begun)
            self._begun.clear()
            self._is_torn = False
        self._add(begun)

    def tear(self) -> None:
        """Note a gap in the stream."""
        self._begun.clear()
        self._is_torn = True

    def _add(self, part: bytes) -> None:
        self._begun += part[: MAX_LINE - len(self._begun)]


class LineMatcher:
    """Writes the steps and values that lines report into the spool."""

    def __init__(self, spool: Path, run_id: str, pattern: str) -> None:
        step_pattern = line_pattern(pattern)
        self._expression = re.compile(step_pattern.expression)
        self._counter = StepCounter(step_pattern.per_epoch)
        self._spool, self._run_id = spool, run_id
        self._timed: list[TimedStep] = []
        self._values: dict[tuple[int, int, str], TimedStep] = {}
        self._newest: dict[int, int] = {}
        self._slow = 0

    def look(self, line: bytes, ts_ns: int) -> None:
        """Take the report in a line; must run in the main thread. A line that takes too long is skipped."""
        if self._slow >= MAX_SLOW:
            return
        try:
            match = self._search(line.decode("utf-8", "replace"))
        except TimeoutError:
            self._slow += 1
            if self._slow == MAX_SLOW:
                logger.warning("no more step lines are recorded: the pattern took too long on %d", MAX_SLOW)
            return
        if match and (report := step_report(match)) and (step := self._counter.take(report, ts_ns)):
            self._note(step)

    def _search(self, line: str) -> re.Match[str] | None:
        signal.setitimer(signal.ITIMER_REAL, MATCH_SECONDS)
        try:
            return self._expression.search(line)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def write(self, writer: SpoolWriter, *, is_last: bool = False) -> None:
        """Append steps and values; only the values if the run's ranks record their steps themselves."""
        timed, self._timed = self._timed, []
        if timed and not any(self._spool.glob(f"*.{self._run_id}*-rank*")):
            durations = [round((step.seconds or 0) * 1e9) for step in timed]
            begins = [step.ts_ns - duration for step, duration in zip(timed, durations, strict=True)]
            writer.append_rows(STEP, {**self._keys(timed, begins), "duration_seconds": durations})
        if named_steps := self._values_until(is_last=is_last):
            steps = [step for step, _ in named_steps]
            named: dict[str, list[Scalar]] = {"name": [name for _, name in named_steps]}
            named["value"] = [step.values[name] for step, name in named_steps]
            writer.append_rows(PROGRESS, {**self._keys(steps, [step.ts_ns for step in steps]), **named})

    def _note(self, step: TimedStep) -> None:
        """Note a step's values, those drawn last: a bar first repeats those of the step before."""
        if step.seconds is not None:
            self._timed.append(step)
        self._newest[step.rank] = step.number
        self._values |= {(step.rank, step.number, name): step for name in step.values}

    def _values_until(self, *, is_last: bool) -> list[tuple[TimedStep, str]]:
        settled = [key for key in self._values if is_last or key[1] != self._newest[key[0]]]
        return [(self._values.pop(key), key[2]) for key in settled]

    def _keys(self, steps: list[TimedStep], ts_ns: list[int]) -> dict[str, list[Scalar]]:
        return {
            "ts_ns": list(ts_ns),
            "run_id": [self._run_id] * len(steps),
            "rank": [step.rank for step in steps],
            "step": [step.number for step in steps],
        }


def follow(copy: BinaryIO, matcher: LineMatcher, writer: SpoolWriter) -> None:
    """Read everything until the copy ends. Raises: UnavailableError when the disk refuses."""
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
    matcher.write(writer, is_last=True)


def _blocks(copy: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """Yield time, source and content of every block; an empty one of no source from time to time while none comes."""
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
    """Return exactly `count` bytes; none if the copy ends before."""
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
    """Run the process: spool, run and pattern are its arguments, the copy its input."""
    spool, run_id, pattern = sys.argv[1:]
    signal.signal(signal.SIGALRM, _too_long)
    try:
        with SpoolWriter(Path(spool), f"{run_id}-lines") as writer, open(0, "rb", buffering=0) as copy:
            follow(copy, LineMatcher(Path(spool), run_id, pattern), writer)
    except ProjectError as error:
        logger.warning("step lines are not recorded: %s", error)


if __name__ == "__main__":
    main()
