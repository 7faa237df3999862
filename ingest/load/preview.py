"""Previews of files: what they would become in the store, without storing anything."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from crosswind.data.lake.lake import set_of
from crosswind.data.schema.job import Job
from crosswind.data.schema.run import Run
from crosswind.data.schema.trial import History, Study
from crosswind.ingest.reader.reader import Context, Reader, Record, Report, read_with

EXAMPLES = 3
WORKLOADS_MAX = 1000  # counted; more are as many at least


@dataclass
class Preview:
    """The records of a file, counted: runs, jobs, trials, and rows by set; with the first of them as examples."""

    report: Report
    runs: int = 0
    workloads: dict[str, int] = field(default_factory=dict)  # runs of each
    jobs: int = 0
    trials: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    example_runs: list[Run] = field(default_factory=list)
    example_trials: list[History] = field(default_factory=list)  # each with its first trials alone

    def take(self, record: Record) -> None:
        """Count a record."""
        match record:
            case Run():
                self._take_run(record)
            case Job():
                self.jobs += 1
            case History():
                self.trials += len(record.trials)
                if len(self.example_trials) < EXAMPLES:
                    self.example_trials.append(replace(record, trials=record.trials[:EXAMPLES]))
            case _:
                name = set_of(record.schema).name
                self.jobs += len(record) if name == "job" else 0
                self.rows[name] += len(record) if name != "job" else 0

    def _take_run(self, run: Run) -> None:
        self.runs += 1
        if run.workload in self.workloads or len(self.workloads) < WORKLOADS_MAX:
            self.workloads[run.workload] = self.workloads.get(run.workload, 0) + 1
        if len(self.example_runs) < EXAMPLES:
            self.example_runs.append(run)

    @property
    def studies(self) -> list[Study]:
        """The first studies."""
        return [history.study for history in self.example_trials]

    def as_json(self) -> Mapping[str, object]:
        """Return it as plain values."""
        counts = {"runs": self.runs, "workloads": self.workloads, "jobs": self.jobs, "trials": self.trials}
        return {"report": self.report, **counts, "rows": dict(self.rows), "examples": self.example_runs}


def preview(path: Path, reader: Reader, report: Report, context: Context) -> Preview:
    """Read a file as `load_file` does, and store nothing. Raises: MalformedError, UnavailableError."""
    outcome = Preview(report)
    for record in read_with(reader, path, report, context):
        outcome.take(record)
    outcome.rows += Counter()  # without sets of no rows
    return outcome
