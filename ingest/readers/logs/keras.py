"""Progress bars of Keras, from a terminal or a file; Tarantella has the same."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.run import RunState
from crosswind.ingest.reader.lines import LINE_LIMIT, plain_head
from crosswind.ingest.reader.reader import Context, Record, Report
from crosswind.ingest.reader.step_lines import KNOWN, NUMBER
from crosswind.ingest.readers.binary import BLOCK_BYTES, Bytes
from crosswind.ingest.readers.logs.log_values import finite, snake
from crosswind.ingest.readers.logs.training_log import LogLine, TrainingLog

EPOCH = re.compile(r"^Epoch (\d{1,9})/(\d{1,9})\s*$")
BAR = re.compile(KNOWN["keras"].expression)
QUIET = re.compile(r"^(?P<done>\d{1,12})/(?P<total>\d{1,12})(?= - \d{1,12}s)")
COLOUR = re.compile(r"\x1b\[[\d;]*m")
PER_STEP = re.compile(r"(?<!\d)(\d{1,12})(s|ms|us)/step\b")
WHOLE = re.compile(r"(?:^|[- ])(\d{1,12})s(?: |$)")
VALUE = re.compile(rf" - ([A-Za-z_][\w /.-]{{0,98}}): ({NUMBER})(?= -|\s*$)")
UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
DRAWN = re.compile(rb"([\r\n\b]+)")  # a bar is drawn over the one before


@dataclass
class Keras:
    """Bars as `Progbar.update` draws them: the last ones of each epoch, with its means.

    With a validation, the last bar's time includes it, and that of the bar before does not.
    Source: keras/src/utils/progbar.py and keras/src/callbacks/progbar_logger.py of Keras 3; keras/utils/
    generic_utils.py, Progbar, of Keras 2.
    """

    _epoch: int = 0  # from 1, whose bar is drawn
    _epochs: int = 0
    _values: set[str] = field(default_factory=set)  # values of the epoch
    _steps: int = 0  # of the epoch, once all are done
    _whole: float = 0.0
    _pace: float | None = None  # seconds a step, in the newest unfinished bar of the epoch
    _is_old: bool = False

    def look(self, line: str) -> LogLine | None:
        """Return an epoch, or its finished bar. Raises: MalformedError."""
        line = COLOUR.sub("", line).strip()
        if match := EPOCH.match(line):
            self._epoch, self._epochs, self._steps = int(match[1]), int(match[2]), 0
            self._pace = None
            return LogLine(begins=self._epoch == 1, settings={"epochs": self._epochs})
        match = BAR.search(line) or QUIET.match(line)
        if not match or not self._epoch:
            return None
        if match["done"] != match["total"]:
            self._pace = _pace(line)
            return None
        values = {snake(name): finite(text) for name, text in VALUE.findall(line)}
        return self._again(line, int(match["total"]), values) if self._steps else self._end(line, match, values)

    def notes(self) -> list[str]:
        """Return a note on the meaning of old versions' bars."""
        old = "bars of Keras before 2.4 call samples steps if it trained on arrays: they look the same as these"
        return [old] if self._is_old else []

    def _end(self, line: str, match: re.Match[str], values: dict[str, float | None]) -> LogLine:
        if not 0 < int(match["total"]) < 1 << 31:
            raise MalformedError(f"{match['total']} steps of an epoch")
        if (seconds := _pace(line)) is None:
            raise MalformedError("no time of a step, such as 30ms/step: the bar may count samples")
        of = "of all its steps"
        if any(name.startswith("val_") for name in values):
            of = "and its validation" if self._pace is None else "as in the last bar before the validation"
            seconds = seconds if self._pace is None else self._pace
        self._is_old |= "[" in line
        self._steps, self._values = int(match["total"]), set(values)
        self._whole = max(_whole(line), seconds * self._steps)
        return LogLine(
            self._epoch * self._steps - 1,
            seconds,
            self._steps,
            self._whole,
            values=values,
            state=RunState.COMPLETED if self._epoch == self._epochs else None,
            tags={"durations_from": f"means of each epoch {of}, rounded as drawn"},
        )

    def _again(self, line: str, total: int, values: dict[str, float | None]) -> LogLine | None:
        """Take a bar drawn once more, after the validation; one without new values is of an evaluation of its own."""
        new = {name: value for name, value in values.items() if name not in self._values}
        if total != self._steps or not new:
            return None
        self._values |= set(new)
        return LogLine(values=new, passed_seconds=max(0.0, _whole(line) - self._whole))


def _pace(line: str) -> float | None:
    match = PER_STEP.search(line)
    return int(match[1]) * UNITS[match[2]] if match else None


def _whole(line: str) -> float:
    """Return the epoch's time, which is in whole seconds."""
    match = WHOLE.search(line)
    return float(finite(match[1]) or 0.0) if match else 0.0


def drawn_lines(path: Path, report: Report) -> Iterator[tuple[int, str]]:
    """Yield every drawn text with the number of its line: a line may be redrawn for hours before it ends.

    Raises: UnavailableError, MalformedError (too large).
    """
    number, rest, is_torn = 1, b"", False
    with Bytes(path, report) as stream:
        while block := stream.take(BLOCK_BYTES):
            *ended, rest = DRAWN.split(rest + block)
            for drawn, end in zip(ended[::2], ended[1::2], strict=True):
                if drawn.strip() and not is_torn:
                    yield number, drawn.decode(errors="replace")
                number, is_torn = number + end.count(b"\n"), False
            if len(rest) > LINE_LIMIT:
                if not is_torn:
                    report.skip(number, rest[:200].decode(errors="replace"), f"longer than {LINE_LIMIT} bytes")
                rest, is_torn = b"", True
    if rest.strip():
        report.skip(
            number, rest[:200].decode(errors="replace"), "has no line end: it may be cut short, or still written"
        )


class KerasReader:
    """Runs and epochs of Keras."""

    name: ClassVar[str] = "keras"
    description: ClassVar[str] = "progress bars of Keras or Tarantella: mean step and metrics of epochs"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether an epoch is followed by its bar in the head."""
        lines = [COLOUR.sub("", line).strip() for line in re.split("[\r\n\b]+", plain_head(head))]
        begun = next((place for place, line in enumerate(lines) if EPOCH.match(line)), len(lines))
        return any(BAR.search(line) or QUIET.match(line) for line in lines[begun:])

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Record]:
        """Yield runs, a row for each epoch's steps, and metrics. Raises: MalformedError, UnavailableError."""
        return TrainingLog(self.name, path, report, context, Keras, drawn_lines).records()
