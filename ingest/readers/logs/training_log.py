"""Training logs: lines become runs, their steps and values; every reader has a dialect of its own for the lines.

A line stands for the steps since the one before: its row has their mean duration, and the number of the last of them.
If lines have no time, their durations are added up: from the last time in the log, or so that the log ends at the
file's last change. Tags of the run say which.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.imported import imported_id
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import PROGRESS, STEP
from crosswind.data.schema.trial import Configuration, Parameter
from crosswind.ingest.reader.lines import changed_ns, numbered_lines
from crosswind.ingest.reader.reader import Context, Record, Report
from crosswind.ingest.readers.clock import EARLIEST_SECONDS, LATEST_SECONDS

ROWS_AT_ONCE = 50_000
SECOND = 1_000_000_000
DAY_NS = 86_400 * SECOND
MOST_SECONDS = 10**9  # thirty years: longer than any training
LOOKED_AT = 1 << 13  # characters of a line: longer than any step line, and quick for every pattern
MAX_SETTINGS = 2000  # of a run; a file in which every line looks like a step is no log
KEYS = ("ts_ns", "run_id", "rank", "step")
VALUE = ("name", "value")
Numbered = Iterable[tuple[int, str]]


@dataclass(frozen=True)
class LogLine:
    """The contents of one line; None or empty if they are not in it.

    `step` is the last one that ended, from 0, and -1 if none has; `seconds` of a step, or the mean of those since the
    line before (or of so many `steps`); `passed_seconds` since that line, if that includes more than the steps.
    Values without a step are of the newest one.
    """

    step: int | None = None
    seconds: float | None = None
    steps: int | None = None
    passed_seconds: float | None = None
    ts_ns: int | None = None
    values: Mapping[str, float | None] = field(default_factory=dict)
    settings: Configuration = field(default_factory=dict)
    world_size: int | None = None
    begins: bool = False
    state: RunState | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


class Dialect(Protocol):
    """The lines of one framework; a new one for each reading, as it may remember lines."""

    def look(self, line: str) -> LogLine | None:
        """Return the contents of a line. Raises: MalformedError for a damaged one."""
        ...

    def notes(self) -> list[str]:
        """Return notes on the log, once it is read."""
        ...


@dataclass
class _Run:
    """A run as far as it is read."""

    run_id: str
    started_ns: int
    last: int = -1
    ended_ns: int = 0
    timed_ns: int | None = None  # the newest line that has its own time
    widest: int = 1  # the most steps of one line
    is_placed: bool = False  # some of its times were added up
    is_timed_by_lines: bool = False
    state: RunState = RunState.LOST


@dataclass
class TrainingLog:
    """One reading of one log. Raises: MalformedError, UnavailableError."""

    name: str
    path: Path
    report: Report
    context: Context
    dialect: Callable[[], Dialect]
    lines: Callable[[Path, Report], Numbered] = numbered_lines
    _run: _Run | None = None
    _now: int | None = None
    _starts: int | None = None  # the log's beginning, if durations are added up back from its end
    _settings: dict[str, Parameter] = field(default_factory=dict)
    _world_size: int | None = None
    _remarks: dict[str, str] = field(default_factory=dict)  # tags of the run
    _runs: int = 0
    _steps: list[tuple[Scalar, ...]] = field(default_factory=list)
    _values: list[tuple[Scalar, ...]] = field(default_factory=list)
    _first: int | None = None  # the first time of the run in the log
    _passed: float = 0.0

    def records(self) -> Iterator[Record]:
        """Yield the runs, and tables of their values."""
        dialect, latest_ns = self.dialect(), changed_ns(self.path) + DAY_NS
        for number, line in self.lines(self.path, self.report):
            try:
                entry = dialect.look(line[:LOOKED_AT])
                if entry is None:
                    continue
                self._check(entry, latest_ns)
            except MalformedError as error:
                self.report.skip(number, line, str(error))
                continue
            yield from self._take(entry, line)
        yield from self._close()
        self.report.notes += dialect.notes()
        if not self._runs:
            self.report.notes.append("no line has a step")

    def _check(self, entry: LogLine, latest_ns: int) -> None:
        if entry.ts_ns is not None and entry.ts_ns > latest_ns:
            raise MalformedError("its time is later than the file was changed; expected one before")
        is_again = self._run and entry.step == self._run.last and entry.seconds is not None and entry.steps is None
        if is_again:
            raise MalformedError(f"step {entry.step} is repeated")
        if (entry.seconds or 0) * (entry.step or 1) + (entry.passed_seconds or 0) > MOST_SECONDS:
            raise MalformedError(f"{entry.seconds} s a step; expected less than {MOST_SECONDS} s of all together")

    def _take(self, entry: LogLine, line: str) -> Iterator[Record]:
        if self._run and (entry.begins or (entry.step is not None and entry.step < self._run.last)):
            yield from self._close()
            self._first = None
            if entry.begins:
                self._settings, self._world_size, self._remarks = {}, None, {}
        self._remember(entry)
        if entry.step is not None or (self._run and entry.values):
            self._advance(entry, line)
        elif entry.ts_ns is not None:
            self._now = entry.ts_ns
        if self._run and entry.state:
            self._run.state = entry.state
            self._run.ended_ns = max(self._run.ended_ns, entry.ts_ns or 0)
        if len(self._steps) + len(self._values) > ROWS_AT_ONCE:
            yield from self._tables()

    def _remember(self, entry: LogLine) -> None:
        """Take the values of the whole run."""
        if len(self._settings) < MAX_SETTINGS:
            self._settings.update(entry.settings)
        self._world_size = entry.world_size or self._world_size
        self._remarks.update(entry.tags)
        if self._first is None:
            self._first = entry.ts_ns

    def _advance(self, entry: LogLine, line: str) -> None:
        run = self._run
        steps = 1 if run is None or entry.step is None else entry.step - run.last
        steps = steps if entry.steps is None else entry.steps
        seconds = entry.seconds if entry.step is not None and steps else None
        now = self._moment(entry, (seconds or 0.0) * steps)
        if run is None:
            run = self._open(line, now - round((entry.passed_seconds or seconds or 0.0) * SECOND))
        elif seconds is None and steps and entry.step is not None and entry.ts_ns and run.timed_ns is not None:
            seconds = (entry.ts_ns - run.timed_ns) / SECOND / steps
            run.is_timed_by_lines = True
        if entry.step is not None:
            run.widest = max(run.widest, steps if run.ended_ns or entry.steps else 1)
            run.last = entry.step
            if entry.ts_ns and (steps or run.timed_ns is None):
                run.timed_ns = entry.ts_ns
        run.ended_ns = max(run.ended_ns, now)
        run.is_placed |= entry.ts_ns is None and entry.step is not None
        self.report.is_timed_by_file |= run.is_placed and bool(self._starts)
        self._note(run, now, seconds, entry.values)

    def _moment(self, entry: LogLine, passed_seconds: float) -> int:
        """Return the time of the line, in ns."""
        if entry.passed_seconds is not None:
            passed_seconds = entry.passed_seconds
        self._passed += passed_seconds
        if entry.ts_ns is not None:
            self._now = entry.ts_ns
        elif self._now is None:
            self._starts = self._beginning()
            self._now = self._starts + round(passed_seconds * SECOND)
        else:
            self._now += round(passed_seconds * SECOND)
        if self._now > LATEST_SECONDS * SECOND:
            raise MalformedError(f"{self.path}: its durations end after the year 2262")
        return self._now

    def _beginning(self) -> int:
        """Return the beginning of a log without times, if it ended when its file was last changed."""
        trial = _Lengthless(self.name, self.path, Report("", ""), self.context, self.dialect, self.lines)
        for _ in trial.records():
            pass
        begin = changed_ns(self.path) - round(min(trial._passed, 1e10) * SECOND)
        if begin < EARLIEST_SECONDS * SECOND:
            reason = f"{trial._passed:.0f} s of steps end when it was changed"
            raise MalformedError(f"{self.path}: {reason}; expected to begin after 2001")
        return begin

    def _open(self, line: str, started_ns: int) -> _Run:
        """Begin a run, identified by facts that stay as the log grows: its name and its first step line."""
        plain = self.path.name.removesuffix(".gz")
        run_id = imported_id(self.name, self.context.system, plain, self._runs, " ".join(line.split()))
        self._runs += 1
        first_ns = started_ns if self._first is None else min(self._first, started_ns)
        self._run = _Run(run_id, first_ns)
        return self._run

    def _note(self, run: _Run, now: int, seconds: float | None, values: Mapping[str, float | None]) -> None:
        if run.last < 0:
            return
        if seconds is not None and seconds >= 0:
            duration = round(seconds * SECOND)
            self._steps.append((now - duration, run.run_id, 0, run.last, duration))
        self._values += [(now, run.run_id, 0, run.last, name, value) for name, value in values.items()]

    def _tables(self) -> Iterator[pa.Table]:
        for metric_set, names, rows in ((STEP, ("duration_seconds",), self._steps), (PROGRESS, VALUE, self._values)):
            if rows:
                self.report.read += len(rows)
                columns = zip((*KEYS, *names), map(list, zip(*rows, strict=True)), strict=True)
                yield to_table(metric_set, dict(columns))
                rows.clear()

    def _close(self) -> Iterator[Record]:
        yield from self._tables()
        run, self._run = self._run, None
        if run is None:
            return
        self.report.read += 1
        tags = self._tags(run)
        for name in ("time_from", "year_from"):
            if name in tags and self._runs == 1:
                self.report.notes.append(f"{name}: {tags[name]}")
        yield Run(
            run.run_id,
            self.context.workload,
            self.context.system,
            run.state,
            world_size=self._world_size,
            configuration=dict(self._settings),
            nodes=(self.context.node,) if self.context.node else (),
            started_ns=run.started_ns,
            ended_ns=max(run.ended_ns, run.started_ns),
            software={},
            tags=tags,
        )

    def _tags(self, run: _Run) -> dict[str, str]:
        tags = {"read_from": self.name, "ranks": "rank 0 stands for all: the log is one for the whole run"}
        if run.is_placed:
            since = "back from the file's modification time" if self._starts else "from the last time in it"
            tags["time_from"] = f"durations of the log, added up {since}"
        if run.widest > 1:
            tags["steps_from"] = f"lines of up to {run.widest} steps: each row has their mean duration"
        if run.is_timed_by_lines:
            tags["durations_from"] = "times of the lines: what lies between steps is in them"
        return tags | self._remarks


class _Lengthless(TrainingLog):
    """A reading that only adds up the log's durations."""

    def _beginning(self) -> int:
        return EARLIEST_SECONDS * SECOND
