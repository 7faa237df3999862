"""Training runs in MLPerf's result logs: `:::MLLOG` lines among a job's other output."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import PROGRESS
from crosswind.ingest.reader.lines import plain_head
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.logs.mlperf_events import BEGINNING, Event, events, number
from crosswind.ingest.readers.logs.mlperf_run import Draft, Facts
from crosswind.ingest.readers.logs.mlperf_system import description, description_file

INTERVALS = ("init", "run", "epoch", "block", "eval", "staging")
BOUNDARIES = frozenset(f"{name}_{edge}" for name in INTERVALS for edge in ("start", "stop"))
LOOPS = ("epoch_start", "block_start", "eval_start", "train_loop", "train_epoch")  # the last two: v0.5
EVALUATIONS = ("eval_accuracy", "eval_error")
ALWAYS_PROGRESS = (*EVALUATIONS, "tracked_stats", "throughput")
UNUSED = ("cache_clear", "weights_initialization", "run_final", "status")  # the last: in run_stop
PERSONS = ("submission_poc_name", "submission_poc_email")
BEFORE_A_RUN = ("cache_clear", "init_start", "run_start", "submission_benchmark", "submission_org")
DRAFTS_MAX = 2_000  # models trained side by side; submissions have some hundred
OPEN_MAX = 100_000  # intervals of the ranks of one run
ROWS_AT_ONCE = 50_000

Row = tuple[int, str, int, int, str, float | None]


@dataclass(frozen=True)
class MllogReader:
    """One run for every run_start; values logged during training are rows of `progress`."""

    name: ClassVar[str] = "mllog"
    description: ClassVar[str] = "MLPerf training and HPC result logs with :::MLLOG lines (also gzip)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the name does not matter
        """Return whether there is an event in the first 64 KiB."""
        return BEGINNING.search(plain_head(head)) is not None

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Run | pa.Table]:
        """Yield the runs, and rows of `progress`. Raises: UnavailableError, MalformedError."""
        reading = Reading(report, context)
        if file := description_file(path):
            reading.describe(file)
        yield from reading.records(events(path, report))


@dataclass
class Reading:
    """One pass over the events."""

    report: Report
    context: Context
    drafts: dict[str, Draft] = field(default_factory=lambda: {"": Draft(Facts(), "")})  # by instance
    ended: list[Draft] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    remarks: Counter[str] = field(default_factory=Counter)

    def describe(self, file: Path) -> None:
        """Take the system's description, or note why not."""
        try:
            self.drafts[""].facts.describe(description(file))
        except MalformedError as error:
            self.report.notes.append(str(error))

    def records(self, logged: Iterable[Event]) -> Iterator[Run | pa.Table]:
        """Yield rows as soon as there are many, and runs when they are complete."""
        for event in logged:
            try:
                self.take(event)
            except MalformedError as error:
                self.report.skip(event.line, event.text, str(error))
            while self.ended:
                yield from self.finish(self.ended.pop())
            if len(self.rows) >= ROWS_AT_ONCE:
                yield self.table()
        if self.rows:
            yield self.table()
        for draft in self.drafts.values():
            yield from self.finish(draft)
        self.note()

    def take(self, event: Event) -> None:
        """Take one event. Raises: MalformedError."""
        draft = self.draft(event)
        if event.time_ns is not None and draft.first_ns is None:
            draft.first_ns = event.time_ns
        if event.benchmark and not draft.facts.benchmark:
            draft.facts.benchmark = event.benchmark
        if event.key in PERSONS:
            self.remarks["events with a person's name or address, which are not kept"] += 1
        elif event.key not in UNUSED and not draft.facts.takes(event):
            self.during(draft, event)

    def during(self, draft: Draft, event: Event) -> None:
        """Take an event after the run's beginning. Raises: MalformedError."""
        key = event.key
        if key in BOUNDARIES:
            if event.time_ns is None:
                raise MalformedError(f"{key} has no time in ms since 1970 between 2001 and 2262")
            self.boundary(draft, event, event.time_ns)
        elif draft.is_training or key in ALWAYS_PROGRESS:
            self.progress(draft, event)
        elif key in LOOPS:
            draft.is_training = draft.started_ns is not None
        else:
            draft.facts.parameter(key, event.value)

    def draft(self, event: Event) -> Draft:
        """Return the run of an event, a new one when the one before is over. Raises: MalformedError."""
        instance = event.instance
        draft = self.drafts.get(instance)
        if draft is None:
            if len(self.drafts) > DRAFTS_MAX:
                raise MalformedError(f"more than {DRAFTS_MAX} instances")
            draft = self.drafts[instance] = Draft(self.drafts[""].facts.copy(), instance)
        elif event.key in BEFORE_A_RUN and draft.is_over(event):
            self.ended.append(draft)
            draft = self.drafts[instance] = Draft(draft.facts.copy(), instance)
        return draft

    def boundary(self, draft: Draft, event: Event, time_ns: int) -> None:
        """Take a start or a stop. Raises: MalformedError."""
        if event.key == "init_start":
            draft.init_ns = draft.init_ns or time_ns
        elif event.key == "init_stop":
            draft.initialised(time_ns)
        elif event.key == "run_start" and draft.started_ns is None:
            draft.start(self.context.system, time_ns)
        elif event.key == "run_stop" and draft.started_ns is None:
            raise MalformedError("run_stop without run_start")
        elif event.key == "run_stop" and draft.ended_ns is None:
            draft.stop(event, time_ns)
        elif event.key in ("run_start", "run_stop"):
            self.remarks[f"{event.key} repeated by another process: the first counts"] += 1
        else:
            self.interval(draft, event, time_ns)

    def interval(self, draft: Draft, event: Event, time_ns: int) -> None:
        """Time epochs, blocks, evaluations and staging."""
        name, _, edge = event.key.rpartition("_")
        draft.is_training |= draft.started_ns is not None and event.key in LOOPS
        if edge == "start":
            if len(draft.open) == OPEN_MAX and (name, event.rank) not in draft.open:
                raise MalformedError(f"more than {OPEN_MAX} intervals that have not ended")
            draft.open[name, event.rank] = time_ns
            return
        started_ns = draft.open.pop((name, event.rank), None)
        if started_ns is not None and started_ns <= time_ns:
            self.row(draft, event, f"{name}_seconds", (time_ns - started_ns) / 1e9)

    def progress(self, draft: Draft, event: Event) -> None:
        """Take numbers that were logged during the run. Raises: MalformedError."""
        if event.key in EVALUATIONS and event.rank == 0:
            draft.evaluated(event.position)
        values = event.value if isinstance(event.value, dict) else {event.key: event.value}
        for name, value in values.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                self.row(draft, event, name[:100], number(value))
            elif value is not None:
                self.remarks["values logged during the run that are no numbers, left out"] += 1

    def row(self, draft: Draft, event: Event, name: str, value: float | None) -> None:
        """Add a row of `progress`; its step is the position that the event itself names. Raises: MalformedError."""
        if draft.started_ns is None:
            self.remarks["values before run_start, left out"] += 1
            return
        if event.time_ns is None:
            raise MalformedError(f"{event.key} has no time in ms since 1970 between 2001 and 2262")
        step = int((event.position or ("", 0))[1])
        self.rows.append((event.time_ns, draft.run_id, event.rank, step, name, value))

    def table(self) -> pa.Table:
        """Return the rows so far, and forget them."""
        columns = dict(zip((column.name for column in PROGRESS.columns), zip(*self.rows, strict=True), strict=True))
        self.report.read += len(self.rows)
        self.rows = []
        return to_table(PROGRESS, columns)

    def finish(self, draft: Draft) -> Iterator[Run]:
        """Yield the run, if it ever began, and count its oddities."""
        if draft.started_ns is None:
            return
        self.report.read += 1
        run = draft.run(self.context.system, self.context.workload)
        self.remarks["runs without run_stop: cut short, or still being written"] += run.ended_ns is None
        self.remarks["runs whose run_stop does not say whether they reached the target"] += _is_silent(draft)
        self.remarks["runs without progress at the last evaluation"] += draft.progress_reached() is None
        self.remarks["runs without a benchmark: name it by --workload"] += not run.workload
        self.remarks["runs without a number of processes"] += run.world_size is None
        yield run

    def note(self) -> None:
        """Write the remarks into the report."""
        self.report.remark(self.remarks)
        if not self.report.read:
            self.report.notes.append("no run_start: nothing to store")


def _is_silent(draft: Draft) -> bool:
    return draft.ended_ns is not None and draft.status not in ("success", "aborted")
