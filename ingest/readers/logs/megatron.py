"""Training logs of Megatron-LM and its derivatives: GPT-NeoX, Megatron-DeepSpeed, Megatron-LLM."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.run import RunState
from crosswind.ingest.reader.lines import plain_head
from crosswind.ingest.reader.reader import Context, Record, Report
from crosswind.ingest.reader.step_lines import KNOWN, NUMBER, step_report
from crosswind.ingest.readers.clock import Clock
from crosswind.ingest.readers.logs.log_values import finite, moment, setting, snake
from crosswind.ingest.readers.logs.training_log import LOOKED_AT, LogLine, TrainingLog

ELAPSED = "elapsed time per iteration (ms)"
ITERATION = re.compile(KNOWN["megatron"].expression)
TOTAL = re.compile(r"iteration +\d{1,15}/ *(\d{1,15}) \|")
VALUE = re.compile(rf"({NUMBER})([A-Za-z]*)")
TIME = r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:[.,](\d{1,30}))?"
STAMP = re.compile(rf"\[{TIME}\] ")
DATETIME = re.compile(rf"\[([^\[\]]{{1,200}})\] datetime: {TIME}")
ARGUMENTS = re.compile(r"-{8} arguments -{8}")
END_OF_ARGUMENTS = re.compile(r"-{8} end of arguments -{8}")
LABEL = r"^(?:\S++(?<=:)(?= ))?"  # of a launcher
ARGUMENT = re.compile(LABEL + r"\s*+(\w++) \.++ ?(.*)$")
OURS = re.compile(LABEL + r"[ \t]*+(?:tensor_)?model_parallel_size \.", re.MULTILINE)
VALIDATION = re.compile(r"validation loss at [^|]{0,100}?iteration (\d{1,15})[^|]{0,100}\|(.*)")
LONGEST_VALUE = 200  # characters, with its name
ENDS = ("after training is done", "exiting program")
NAMES = {
    "lm loss": "loss",
    "lm_loss": "loss",
    ELAPSED: "",  # is the step's duration
    "throughput per GPU (TFLOP/s/GPU)": "tflops_per_gpu",
    "TFLOPs": "tflops_per_gpu",
    "samples/sec": "samples_per_second",
    "samples per second": "samples_per_second",
    "energy per GPU (J/iter/GPU)": "joules_per_gpu",
    "power per GPU (W/GPU)": "watts_per_gpu",
    "lm loss value": "loss",
    "lm loss PPL": "perplexity",
}


@dataclass
class Megatron:
    """Lines as `training_log` and `print_datetime` write them.

    Source: NVIDIA/Megatron-LM megatron/training/training.py; EleutherAI/gpt-neox megatron/logging.py.
    """

    clock: Clock
    _is_in_arguments: bool = False

    def look(self, line: str) -> LogLine | None:
        """Return an iteration, a validation, a moment or an argument. Raises: MalformedError."""
        if " iteration" in line and "|" in line:
            return self._iteration(line) if TOTAL.search(line) else self._validation(line)
        if "] datetime: " in line:
            return self._datetime(line)
        if " arguments -" in line:
            return self._banner(line)
        return self._argument(line) if self._is_in_arguments else None

    def notes(self) -> list[str]:
        """Return notes on doubtful lines."""
        return self.clock.notes()

    def _iteration(self, line: str) -> LogLine:
        match, total = ITERATION.search(line), TOTAL.search(line)
        entry = step_report(match) if match else None
        if entry is None or entry.step is None or entry.seconds is None or total is None:
            raise MalformedError("an iteration without a time of less than thirty years")
        if entry.step >= int(total[1]):
            raise MalformedError(f"iteration {entry.step + 1} of {total[1]}")
        stamp = STAMP.search(line, 0, total.start())
        return LogLine(
            entry.step,
            entry.seconds,
            ts_ns=moment(self.clock, *stamp.groups()) if stamp else None,
            values=_values(line[: total.start()]) | _values(line[total.end() :]),
            state=RunState.COMPLETED if entry.step + 1 == int(total[1]) else None,
        )

    def _validation(self, line: str) -> LogLine | None:
        if not (match := VALIDATION.search(line)):
            return None
        return LogLine(values={f"validation_{name}": value for name, value in _values(match[2]).items()})

    def _datetime(self, line: str) -> LogLine | None:
        if not (match := DATETIME.search(line)):
            return None
        state = RunState.COMPLETED if match[1].startswith(ENDS) else None
        return LogLine(ts_ns=moment(self.clock, match[2], match[3], match[4]), state=state)

    def _banner(self, line: str) -> LogLine | None:
        if END_OF_ARGUMENTS.search(line):
            self._is_in_arguments = False
        elif ARGUMENTS.search(line):
            self._is_in_arguments = True
            return LogLine(begins=True)
        return None

    def _argument(self, line: str) -> LogLine | None:
        if not (match := ARGUMENT.match(line)) or (value := setting(match[2])) is None:
            return None
        world_size = value if match[1] == "world_size" and type(value) is int and value > 0 else None
        return LogLine(settings={match[1]: value}, world_size=world_size)


def _values(line: str) -> dict[str, float | None]:
    """Return values between bars, `name: number` or, in old logs, `name number`; a unit becomes part of the name."""
    values = {}
    for part in line.split("|"):
        label, _, last = part.strip().rpartition(" ")
        if len(part) < LONGEST_VALUE and label and (match := VALUE.fullmatch(last)):
            label = label.rstrip().removesuffix(":").rstrip()
            if name := NAMES.get(label, snake(f"{label} {match[2]}")):
                values[name] = finite(match[1])
    return values


class MegatronReader:
    """Runs, steps and losses of Megatron-LM."""

    name: ClassVar[str] = "megatron"
    description: ClassVar[str] = "training log of Megatron-LM, GPT-NeoX or Megatron-DeepSpeed"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether an iteration, or the arguments of this program, are in the head."""
        text = plain_head(head)
        if any(ITERATION.search(line[:LOOKED_AT]) for line in text.splitlines() if ELAPSED in line):
            return True
        return bool(ARGUMENTS.search(text) and OURS.search(text))

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Record]:
        """Yield runs, their steps and what was logged. Raises: MalformedError, UnavailableError."""
        return TrainingLog(self.name, path, report, context, lambda: Megatron(Clock(context.zone))).records()
