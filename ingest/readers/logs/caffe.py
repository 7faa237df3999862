"""Training logs of Caffe and its derivatives: Caffe-MPI, CaffeOnSpark, Intel's and NVIDIA's."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.run import RunState
from crosswind.ingest.reader.lines import plain_head
from crosswind.ingest.reader.reader import Context, Record, Report
from crosswind.ingest.reader.step_lines import KNOWN, NUMBER, step_report
from crosswind.ingest.readers.logs.glog import PREFIX, GlogClock, glog_clock
from crosswind.ingest.readers.logs.log_values import finite, setting, snake
from crosswind.ingest.readers.logs.training_log import LOOKED_AT, LogLine, TrainingLog

LOGGED = re.compile(PREFIX + r"\w{0,60}solver\.(?:cpp|cc|hpp):\d{1,9}\] (?P<text>.*)$")
ITERATION = re.compile(KNOWN["caffe"].expression)
SPEED = re.compile(rf"\((?P<rate>{NUMBER}) iter/s, (?P<seconds>{NUMBER})s/\d+ iters?\)")
RATE = re.compile(rf"Iteration (?P<step>\d+), lr = (?P<learning_rate>{NUMBER})")
OUTPUT = re.compile(rf"(?P<net>Train|Test) net output #(?P<index>\d+): (?P<name>\S+) = (?P<value>{NUMBER})")
CREATED = re.compile(r"^Log file created at: (\d{4})/\d\d/\d\d ")
PHRASE = re.compile(  # of Caffe's solver: other programs have files of that name, too
    r"^\s{0,20}(?:Iteration \d{1,15}(?: \([^()]{1,40} iter/s|, (?:loss|lr) = |, Testing net )"
    r"|(?:Train|Test) net output #\d|Initializing solver from parameters|Solver scaffolding done\."
    r"|Learning Rate Policy: |Optimization Done\.)"
)
PARAMETER = re.compile(r"^(\w+): (.*)$")
BEGINS = "Initializing solver from parameters"
MAX_OUTPUTS = 10_000  # of an iteration
ENDS = ("Optimization Done.", "Optimization stopped early.")


@dataclass
class Caffe:
    """Lines of the solver in the form of glog, whose older versions name no year.

    Source: BVLC/caffe src/caffe/solver.cpp, Step, Test and Solve; src/caffe/solvers/sgd_solver.cpp, ApplyUpdate.
    """

    glog: GlogClock
    _has_speed: bool = False
    _is_in_parameters: bool = False
    _outputs: set[str] = field(default_factory=set)

    def look(self, line: str) -> LogLine | None:
        """Return the contents of a solver's line. Raises: MalformedError."""
        if match := LOGGED.search(line):
            self._is_in_parameters = BEGINS in match["text"]
            return self._said(match)
        if match := CREATED.match(line):
            self.glog.year = int(match[1])
        elif self._is_in_parameters and (match := PARAMETER.match(line)):
            value = setting(match[2].strip('"'))
            return None if value is None else LogLine(settings={match[1]: value})
        return None

    def notes(self) -> list[str]:
        """Return notes on doubtful lines."""
        return self.glog.clock.notes()

    def _said(self, match: re.Match[str]) -> LogLine | None:
        text = match["text"]
        progress = ITERATION.search(text) or RATE.search(text)
        if progress and (entry := step_report(progress)) and entry.step is not None:
            return self._iteration(text, entry.step, entry.values, self.glog.nanoseconds(match.groupdict()))
        if output := OUTPUT.search(text):
            return LogLine(ts_ns=self.glog.nanoseconds(match.groupdict()), values=self._output(output))
        if text.startswith("Iteration "):  # a test begins
            self._outputs.clear()
        state = RunState.COMPLETED if text.startswith(ENDS) else None
        return LogLine(ts_ns=self.glog.nanoseconds(match.groupdict()), begins=BEGINS in text, state=state)

    def _iteration(self, text: str, step: int, values: Mapping[str, float | None], ts_ns: int) -> LogLine:
        self._outputs.clear()
        speed = SPEED.search(text)
        if speed is None and self._has_speed and "loss" in values:  # of the trained net: no step
            return LogLine(ts_ns=ts_ns, values={"final_loss": values["loss"]})
        self._has_speed |= speed is not None
        return LogLine(step, _seconds(speed), ts_ns=ts_ns, values=values, tags=self.glog.tags())

    def _output(self, match: re.Match[str]) -> dict[str, float | None]:
        """Return the outputs; of several numbers under one name, the further ones by their place."""
        name = f"{match['net'].lower()}_{snake(match['name'])}"
        if name in self._outputs:
            name = f"{name}_{match['index']}"
        if len(self._outputs) < MAX_OUTPUTS:
            self._outputs.add(name)
        return {name: finite(match["value"])}


def _seconds(speed: re.Match[str] | None) -> float | None:
    """Return the seconds of one step: by the rate, as the count next to it is that of the steps requested."""
    if speed is None:
        return None
    rate, seconds = finite(speed["rate"]) or 0.0, finite(speed["seconds"]) or 0.0
    steps = round(min(rate * seconds, 1e9))
    return seconds / steps if steps else None


def _dialect(path: Path, context: Context) -> Caffe:
    return Caffe(glog_clock(path, context.zone))


class CaffeReader:
    """Runs, iterations and losses of Caffe."""

    name: ClassVar[str] = "caffe"
    description: ClassVar[str] = "training log of Caffe: iterations, speed, losses, tests"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether there is a solver's line in the head."""
        said = (LOGGED.search(line[:LOOKED_AT]) for line in plain_head(head).splitlines())
        return any(match is not None and PHRASE.match(match["text"]) for match in said)

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Record]:
        """Yield runs, their steps and losses. Raises: MalformedError, UnavailableError."""
        dialect = partial(_dialect, path, context)
        return TrainingLog(self.name, path, report, context, dialect).records()
