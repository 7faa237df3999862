"""Training logs of TensorFlow's Estimator and TF-Slim, as of Mesh-TensorFlow and other programs for TensorFlow 1."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.run import RunState
from crosswind.ingest.reader.lines import plain_head
from crosswind.ingest.reader.reader import Context, Record, Report
from crosswind.ingest.reader.step_lines import NUMBER
from crosswind.ingest.readers.logs.glog import PREFIX, GlogClock, glog_clock
from crosswind.ingest.readers.logs.log_values import finite, snake
from crosswind.ingest.readers.logs.training_log import LogLine, TrainingLog

PLAIN = re.compile(r"INFO:tensorflow:(?P<text>.*)$")
TIMED = re.compile(PREFIX + r"\w{1,100}\.py:\d{1,9}\] (?P<text>.*)$")
LOSS = re.compile(
    rf"loss = (?P<loss>{NUMBER}), (?:global_)?step = (?P<step>\d{{1,15}})(?: \((?P<seconds>{NUMBER}) sec\))?"
)
SLIM = re.compile(rf"global step (?P<done>\d{{1,15}}): loss = (?P<loss>{NUMBER}) \((?P<seconds>{NUMBER}) sec/step\)")
RATE = re.compile(rf"(global_step|examples)/sec: ({NUMBER})")
EVALUATION = re.compile(r"Saving dict for global step \d+: (.*)")
VALUE = re.compile(rf"(?<![\w/])([\w/]{{1,200}}) = ({NUMBER})(?:,|$)")
STEP = re.compile(
    r"(?:INFO:tensorflow:|\.py:\d{1,9}\] )(?:loss = \S{1,60}, (?:global_)?step = \d|global step \d{1,15}: loss = )"
)
RATES = {"global_step": "steps_per_second", "examples": "examples_per_second"}
END = "Loss for final step: "


@dataclass
class Estimator:
    """Lines of the hooks that log a training.

    Where absl writes them as well, with their time, the ones without are skipped.
    Source: tensorflow/python/training/basic_session_run_hooks.py, LoggingTensorHook and StepCounterHook;
    tensorflow_estimator/python/estimator/estimator.py; google-research/tf-slim tf_slim/learning.py, train_step.
    """

    glog: GlogClock
    _is_timed: bool = False
    _last: int | None = None

    def look(self, line: str) -> LogLine | None:
        """Return a step, a rate, an evaluation or the end. Raises: MalformedError."""
        if match := TIMED.search(line):
            self._is_timed = True
            return self._said(match["text"], self.glog.nanoseconds(match.groupdict()))
        match = None if self._is_timed else PLAIN.search(line)
        return self._said(match["text"], None) if match else None

    def notes(self) -> list[str]:
        """Return notes on doubtful lines."""
        return self.glog.clock.notes()

    def _said(self, text: str, ts_ns: int | None) -> LogLine | None:
        if match := LOSS.match(text):
            return self._loss(match, ts_ns)
        if match := SLIM.match(text):
            return self._slim(match, ts_ns)
        values = {RATES[name]: finite(value) for name, value in RATE.findall(text[:100])}
        if match := EVALUATION.match(text):
            metrics = VALUE.findall(match[1])
            values = {f"eval_{snake(name)}": finite(value) for name, value in metrics if name != "global_step"}
        state = RunState.COMPLETED if text.startswith(END) else None
        return LogLine(ts_ns=ts_ns, values=values, state=state) if values or state or ts_ns else None

    def _loss(self, match: re.Match[str], ts_ns: int | None) -> LogLine | None:
        """Return a step with its loss; the time in the line is that since the line before."""
        step, last = int(match["step"]), self._last
        if step == last:
            return None
        self._last = step
        passed = finite(match["seconds"]) if match["seconds"] else None
        mean = passed / (step - last) if passed is not None and last is not None and step > last else None
        values = {"loss": finite(match["loss"])}
        return LogLine(step, mean, passed_seconds=passed, ts_ns=ts_ns, values=values, tags=self.glog.tags())

    def _slim(self, match: re.Match[str], ts_ns: int | None) -> LogLine | None:
        """Return a step of TF-Slim; the time in the line is that of its step alone; lines may come twice."""
        step, last = int(match["done"]) - 1, self._last
        if step in (last, -1):
            return None
        self._last, seconds = step, finite(match["seconds"])
        steps = step - last if last is not None and step > last else 1
        passed = None if seconds is None else seconds * steps
        values = {"loss": finite(match["loss"])}
        return LogLine(step, seconds, 1, passed, ts_ns=ts_ns, values=values, tags=self.glog.tags())


def _dialect(path: Path, context: Context) -> Estimator:
    return Estimator(glog_clock(path, context.zone))


class EstimatorReader:
    """Runs, steps and losses of TensorFlow's Estimator."""

    name: ClassVar[str] = "estimator"
    description: ClassVar[str] = "training log of TensorFlow's Estimator or TF-Slim, as of Mesh-TensorFlow"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether a step's loss is in the head."""
        return bool(STEP.search(plain_head(head)))

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Record]:
        """Yield runs, their steps and losses. Raises: MalformedError, UnavailableError."""
        return TrainingLog(self.name, path, report, context, partial(_dialect, path, context)).records()
