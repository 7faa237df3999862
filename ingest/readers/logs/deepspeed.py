"""Training logs of DeepSpeed: the engine's reports, its throughput and its timers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.ingest.reader.lines import plain_head
from crosswind.ingest.reader.reader import Context, Record, Report
from crosswind.ingest.reader.step_lines import KNOWN, NUMBER, step_report
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.logs.log_values import finite, moment, setting, snake
from crosswind.ingest.readers.logs.training_log import LogLine, TrainingLog

STEP = re.compile(r"\[Rank 0\] step=(?P<done>\d{1,15}), skipped=(?P<skipped_steps>\d{1,15}), lr=\[(?P<lr>[^\]]*)\]")
SPEED = re.compile(KNOWN["deepspeed"].expression)
RATE = re.compile(rf"\[timer\.py:\d{{1,9}}:stop\].{{0,300}}?(?:Curr|, )SamplesPerSec=({NUMBER})")
MEMORY = re.compile(r"(Max)?MemAllocated=([\d.]+)GB")
TIMERS = re.compile(r"(?:^|\] |rank=0 )time \(ms\) \| (.*)")
TIMER = re.compile(rf"(?<![\w-])([\w-]{{1,100}}): ({NUMBER})")
STAMP = re.compile(r"\[(?:INFO )?(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:,(\d{3}))?\]")
CONFIGURED = re.compile(r"\[config\.py:\d{1,9}:print\] DeepSpeedEngine configuration:")
CONFIGURATION = re.compile(r"\[config\.py:\d+:print\] +(\w+) \.* ([^{<].*)$")
GIB = 1 << 30  # the timer's divisor, which it calls GB


@dataclass
class DeepSpeed:
    """Lines of the engine of rank 0.

    Source: deepspeed/runtime/engine.py, _report_progress; deepspeed/utils/timer.py, ThroughputTimer.stop and
    SynchronizedWallClockTimer.log; deepspeed/runtime/config.py, print.
    """

    clock: Clock
    _is_timed: bool = True  # the newest step has its timers, or there is none

    def look(self, line: str) -> LogLine | None:
        """Return a report, a throughput, timers or a parameter. Raises: MalformedError."""
        if "step=" in line or "SamplesPerSec=" in line:
            return self._step(line) or self._rate(line)
        if "time (ms) |" in line:
            return self._timers(line)
        if match := CONFIGURATION.search(line):
            value = setting(match[2])
            return None if value is None else LogLine(settings={match[1]: value})
        return None

    def notes(self) -> list[str]:
        """Return notes on doubtful lines."""
        return self.clock.notes()

    def _step(self, line: str) -> LogLine | None:
        match = STEP.search(line) or SPEED.search(line)
        entry = step_report(match) if match else None
        if entry is None or entry.step is None or match is None:
            return None
        if entry.step < 0:  # printed once, when the engine is made
            return LogLine(ts_ns=self._time(line), begins=True)
        self._is_timed = False
        values = {name: value for name, value in entry.values.items() if name != "lr"} | _memory(line)
        return LogLine(entry.step, ts_ns=self._time(line), values=values | _rates(match.groupdict().get("lr") or ""))

    def _rate(self, line: str) -> LogLine | None:
        """Return the throughput; in versions whose timer counts micro-steps it is that of the newest step."""
        if not (match := RATE.search(line)):
            return None
        return LogLine(ts_ns=self._time(line), values={"samples_per_second": finite(match[1])} | _memory(line))

    def _timers(self, line: str) -> LogLine | None:
        """Return the first timers after a step: later ones are of steps without a line."""
        match = TIMERS.search(line)
        if match is None or "microstep" in line or self._is_timed:
            return None
        self._is_timed = True
        timers = {f"{snake(name)}_seconds": finite(text, -3) for name, text in TIMER.findall(match[1])}
        return LogLine(ts_ns=self._time(line), values=timers)

    def _time(self, line: str) -> int | None:
        stamp = STAMP.search(line)
        return moment(self.clock, *stamp.groups()) if stamp else None


def _rates(listed: str) -> dict[str, float | None]:
    """Return learning rates of the groups of parameters; one if they are equal."""
    rates = [finite(text) for text in listed.split(",") if text.strip()]
    if len(set(rates)) == 1:
        return {"learning_rate": rates[0]}
    return {f"learning_rate_{group}": rate for group, rate in enumerate(rates)}


def _memory(line: str) -> dict[str, float | None]:
    sizes = MEMORY.findall(line)
    return {f"{'max_' if most else ''}memory_allocated_bytes": float(finite(size) or 0) * GIB for most, size in sizes}


class DeepSpeedReader:
    """Runs, steps and throughput of DeepSpeed."""

    name: ClassVar[str] = "deepspeed"
    description: ClassVar[str] = "training log of DeepSpeed: reports of rank 0, throughput, timers"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether a report of the engine, or its configuration, is in the head."""
        text = plain_head(head)
        return any(pattern.search(text) for pattern in (STEP, SPEED, CONFIGURED))

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Record]:
        """Yield runs, their steps and what was logged. Raises: MalformedError, UnavailableError."""
        return TrainingLog(self.name, path, report, context, lambda: DeepSpeed(Clock(context.zone))).records()
