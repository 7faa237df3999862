"""Output of FlexFlow: metrics of every iteration, and the time of a whole training."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.run import RunState
from crosswind.ingest.reader.lines import plain_head
from crosswind.ingest.reader.reader import Context, Record, Report
from crosswind.ingest.reader.step_lines import KNOWN, NUMBER
from crosswind.ingest.readers.logs.log_values import finite, snake
from crosswind.ingest.readers.logs.training_log import LogLine, TrainingLog

METRICS = re.compile(KNOWN["flexflow"].expression)
METRIC = re.compile(rf"(?<!\w)(\w{{1,100}}): ({NUMBER})(%?)")
ELAPSED = re.compile(
    r"(?:epochs (?P<epochs>\d{1,9}), )?"
    rf"ELAPSED TIME = (?P<seconds>{NUMBER})s, THROUGHPUT = (?P<rate>{NUMBER}) samples/s"
)
BATCH = re.compile(r"batchSize\((\d{1,9})\) workersPerNodes\((\d{1,9})\) numNodes\((\d{1,9})\)")


@dataclass
class FlexFlow:
    """Lines of the metrics' task, and of the examples' own timing, which users copy.

    Source: flexflow/FlexFlow src/metrics_functions/metrics_functions.cc, PerfMetrics::print; examples/cpp/AlexNet/
    alexnet.cc and examples/python/native, the lines after training.
    """

    _batch: int = 0
    _steps: int = 0

    def look(self, line: str) -> LogLine | None:
        """Return an iteration, or the end. Raises: MalformedError."""
        if match := BATCH.search(line):
            self._batch = int(match[1])
            settings = dict(
                zip(("batch_size", "workers_per_node", "node_count"), map(int, match.groups()), strict=True)
            )
            return LogLine(settings=settings)
        if METRICS.search(line):
            self._steps += 1
            return LogLine(self._steps - 1, values=_metrics(line))
        match = ELAPSED.search(line)
        return self._end(match) if match else None

    def notes(self) -> list[str]:
        """Return no notes."""
        return []

    def _end(self, match: re.Match[str]) -> LogLine:
        """Return the end of a training: steps have only a mean time, and that only with the size of a batch."""
        passed, rate = finite(match["seconds"]), finite(match["rate"])
        mean = self._batch / rate if self._batch and rate else None
        steps = round((passed or 0) / mean) if mean else self._steps
        step, self._steps = max(self._steps, steps, 1) - 1, 0
        return LogLine(
            step,
            mean,
            max(steps, 1),
            passed_seconds=passed,
            values={"samples_per_second": rate},
            settings={"epochs": int(match["epochs"])} if match["epochs"] else {},
            state=RunState.COMPLETED,
        )


def _metrics(line: str) -> dict[str, float | None]:
    """Return the metrics of an iteration; shares are logged in percent."""
    return {snake(name): finite(text, -2 if percent else 0) for name, text, percent in METRIC.findall(line)}


class FlexFlowReader:
    """Runs, iterations and throughput of FlexFlow."""

    name: ClassVar[str] = "flexflow"
    description: ClassVar[str] = "output of FlexFlow: metrics of iterations, time and throughput"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether an iteration's metrics, the end's line or the configuration's is in the head."""
        text = plain_head(head)
        return any(pattern.search(text) for pattern in (METRICS, ELAPSED, BATCH))

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Record]:
        """Yield runs, their mean step and metrics. Raises: MalformedError, UnavailableError."""
        return TrainingLog(self.name, path, report, context, FlexFlow).records()
