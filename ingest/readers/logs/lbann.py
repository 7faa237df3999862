"""Output of LBANN: its results of every epoch."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.ingest.reader.lines import plain_head
from crosswind.ingest.reader.reader import Context, Record, Report
from crosswind.ingest.reader.step_lines import NUMBER
from crosswind.ingest.readers.logs.log_values import finite, snake
from crosswind.ingest.readers.logs.training_log import LogLine, TrainingLog

EPOCH = re.compile(r"\[(\d{1,9})\] Epoch : stats formated \[tr/v/te[^\]]{0,200}\] iter/epoch = \[(\d{1,9})/")
RESOURCE = re.compile(
    r"^(?>(?P<model>Model (?P<old>\d{1,9}))|.{0,200}?\(instance (?P<instance>\d{1,9})\)) "
    r"(?:(?P<training>training epoch (?P<epoch>\d{1,9}))|(?P<mode>validation|test|tournament)) "
    r"(?P<name>.{1,200}?) : (?P<value>.+)$"
)
STATISTIC = re.compile(rf"({NUMBER}|N/A)s? (mean|median|max|min|stdev)")
SETTING = re.compile(
    r"^\s*(Processes on node|Total number of processes|OpenMP threads per process|GPUs on node|Trainers"
    r"|Processes per trainer)\s+: (\d{1,9})\s*$"
)
BEGINS = "STARTING lbann with this command line"
FIRST = re.compile(rf"^[^\"'`\n]{{0,100}}{BEGINS}", re.MULTILINE)  # not quoted in a program
MAX_VALUES = 1000  # of an epoch, of all trainers
RUN_TIME, STATISTICS = "run time", "mini-batch time statistics"


@dataclass
class Lbann:
    """Lines of the callback `print_statistics` and of the start.

    Source: LLNL/lbann src/callbacks/print_statistics.cpp, report_results; src/utils/lbann_library.cpp.
    """

    _steps: dict[int, int] = field(default_factory=dict)  # of the newest epoch
    _waiting: dict[str, float | None] = field(default_factory=dict)  # of the epoch, until the line with its steps' time
    _seconds: float | None = None

    def look(self, line: str) -> LogLine | None:
        """Return an epoch's results. Raises: MalformedError."""
        if " : " not in line and BEGINS not in line:
            return None
        if match := EPOCH.search(line):
            self._steps = {int(match[1]): int(match[2])}
        elif match := SETTING.match(line):
            world_size = int(match[2]) if match[1].startswith("Total") else None
            return LogLine(settings={snake(match[1]): int(match[2])}, world_size=world_size or None)
        elif match := RESOURCE.match(line.strip()):
            return self._result(match)
        return LogLine(begins=True) if BEGINS in line else None

    def notes(self) -> list[str]:
        """Return no notes."""
        return []

    def _result(self, match: re.Match[str]) -> LogLine | None:
        trainer = int(match["instance"] or match["old"])
        values = _values(match["name"], match["value"])
        prefix = "epoch_" if match["name"] == RUN_TIME else ""
        prefix = prefix if match["training"] else f"{match['mode']}_"
        named = {f"{prefix}{name}{f'_trainer{trainer}' if trainer else ''}": value for name, value in values.items()}
        if not match["training"]:
            return LogLine(values=named, passed_seconds=values.get("seconds") if not trainer else None)
        if match["name"] == RUN_TIME and not trainer:
            self._seconds = values["seconds"]
        if match["name"] != STATISTICS:
            if len(self._waiting) < MAX_VALUES:
                self._waiting |= named
            return None
        return LogLine(values=named) if trainer else self._epoch(int(match["epoch"]), named)

    def _epoch(self, epoch: int, statistics: dict[str, float | None]) -> LogLine:
        steps = self._steps.get(epoch)
        if not steps:
            raise MalformedError(f"no line has the number of steps of epoch {epoch}")
        mean = statistics.pop("step_seconds_mean", None)
        values, self._waiting = {**self._waiting, **statistics}, {}
        passed, self._seconds = self._seconds, None
        return LogLine((epoch + 1) * steps - 1, mean, steps, passed, values=values)


def _values(name: str, text: str) -> dict[str, float | None]:
    """Return the values in one line; shares are logged in percent. Raises: MalformedError."""
    if name == STATISTICS:
        statistics = STATISTIC.findall(text)
        return {f"step_seconds_{what}": None if number == "N/A" else finite(number) for number, what in statistics}
    if name == RUN_TIME:
        return {"seconds": finite(text.removesuffix("s"))}
    if text.endswith("%"):
        return {snake(name): finite(text[:-1], -2)}
    return {snake(name): finite(text)}


class LbannReader:
    """Runs, epochs and objectives of LBANN."""

    name: ClassVar[str] = "lbann"
    description: ClassVar[str] = "output of LBANN: time, objective and metrics of each epoch"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether an epoch's headline, or the start of the program, is in the head."""
        text = plain_head(head)
        return bool(EPOCH.search(text) or FIRST.search(text))

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Record]:
        """Yield runs, a row for each epoch's steps, and results. Raises: MalformedError, UnavailableError."""
        return TrainingLog(self.name, path, report, context, Lbann).records()
