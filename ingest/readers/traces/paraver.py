"""Paraver's traces (`.prv`, also .gz), as Extrae records them, with `.pcf` and `.row` next to them.

A rank is a task. Its running state is useful computation, calls of MPI are messages, and counters of hardware are
summed over useful computation. Source: BSC, "Paraver: Parallel Program Visualization and Analysis tool".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from crosswind.data.schema.errors import MalformedError
from crosswind.data.traces.trace import NONE, Group, Kind, Place, RankTrace
from crosswind.ingest.reader.lines import numbered_lines
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.binary import plain_bytes
from crosswind.ingest.readers.traces.paraver_labels import Labels, labels_of, nodes_of
from crosswind.ingest.readers.traces.rank_rows import RankRows
from crosswind.ingest.readers.traces.reader import LIMIT, beside

HEADER = re.compile(r"#Paraver \([^)]*\):(\d+)(_ns)?:[^:]*(?:\([^)]*\))?:(\d+):(.*)")
APPLICATION = re.compile(r"(\d+)\(([\d:,]*)\)")
RUNNING, INPUT_OUTPUT = 1, 12  # states
STATES = {RUNNING: (Kind.USEFUL, "Running"), INPUT_OUTPUT: (Kind.IO, "I/O")}
MPI = range(50000001, 50000004)  # events: point to point, collective, other
COMMUNICATOR, SIZES = 50100004, (50100001, 50100002)
COUNTERS = range(42000000, 43000000)
COUNTER_NAMES = {"PAPI_TOT_INS": "instructions", "PAPI_TOT_CYC": "cycles"}
LATEST_NS = 1 << 61


@dataclass(frozen=True)
class ParaverReader:
    """One file is a run."""

    name: ClassVar[str] = "paraver"
    version: ClassVar[int] = 1
    companions: ClassVar[tuple[str, ...]] = (".pcf", ".row")
    description: ClassVar[str] = "Paraver's trace (.prv, also .gz)"

    def recognises(self, path: Path, head: bytes) -> bool:  # noqa: ARG002  the content says it
        """Return whether it begins as Paraver's traces do."""
        return plain_bytes(head).startswith(b"#Paraver (")

    def read(self, path: Path, report: Report) -> Iterator[RankTrace]:
        """Yield a trace for each task. Raises: MalformedError, UnavailableError."""
        lines = numbered_lines(path, report, file_limit=LIMIT)
        _, first = next(lines, (0, ""))
        run = _Run(path, first, labels_of(beside(path, ".pcf"), report))
        for number, line in lines:
            try:
                run.add(line)
            except (ValueError, IndexError) as error:
                report.skip(number, line, f"{error}; expected a record of Paraver")
        report.read += sum(task.rows.count for task in run.tasks.values())
        yield from run.traces(nodes_of(beside(path, ".row"), report))


@dataclass
class _Thread:
    """The states of a thread so far, and the call of MPI in which it is."""

    place: Place
    state: tuple[int, int] = (0, 0)  # begin and number
    before: int = 0  # number of the state that ended at that begin
    call: tuple[int, int, int] | None = None  # begin, type and value
    group: int = NONE
    size: int = NONE
    counted_ns: int = 0  # the time of its last counters


@dataclass
class _Task:
    rows: RankRows
    threads: dict[int, _Thread] = field(default_factory=dict)
    waiting: dict[Kind, list[tuple[Any, ...]]] = field(default_factory=dict)
    counters: dict[int, int] = field(default_factory=dict)

    def thread(self, number: int) -> _Thread:
        """Return a thread by its number, from 1."""
        if number not in self.threads:
            self.threads[number] = _Thread(Place(f"thread {number}", NONE, number))
        return self.threads[number]


class _Run:
    def __init__(self, path: Path, header: str, labels: Labels) -> None:
        match = HEADER.fullmatch(header)
        if not match:
            raise MalformedError(
                f"{path}: header {header[:100]!r}; expected #Paraver (date):time:nodes:applications:..."
            )
        self._path, self._labels = path, labels
        self._unit_ns = 1 if match.group(2) else 1000
        self._sizes = [int(size) for size, _ in APPLICATION.findall(match.group(4))]
        self._nodes = [
            [int(one.rpartition(":")[2] or 0) for one in text.split(",")]
            for _, text in APPLICATION.findall(match.group(4))
        ]
        self._communicators: dict[int, Group] = {}
        self._messages = 0
        self.tasks: dict[int, _Task] = {}
        self.ignored: dict[int, int] = {}

    def add(self, line: str) -> None:
        """Add a record. Raises: ValueError, IndexError."""
        if line.startswith("#"):
            return
        if line.startswith("c:"):
            self._add_communicator([int(one) for one in line[2:].split(":")])
            return
        fields = [int(one) for one in line.split(":")]
        {1: self._add_state, 2: self._add_events, 3: self._add_message}[_one_of(fields[0], 1, 2, 3)](fields)

    def _task(self, application: int, number: int) -> _Task:
        if not (0 < application <= len(self._sizes) and 0 < number <= self._sizes[application - 1]):
            raise ValueError(f"task {number} of application {application} is not in the header")
        rank = sum(self._sizes[: application - 1]) + number - 1
        if rank not in self.tasks:
            self.tasks[rank] = _Task(RankRows(str(self._path)))
        return self.tasks[rank]

    def _ns(self, time: int) -> int:
        if not 0 <= time * self._unit_ns < LATEST_NS:
            raise ValueError(f"time {time}")
        return time * self._unit_ns

    def _add_communicator(self, fields: Sequence[int]) -> None:
        application, number, _, *tasks = fields
        first = sum(self._sizes[: application - 1])
        self._communicators[number] = Group(str(number), tuple(first + task - 1 for task in tasks), len(tasks))

    def _add_state(self, fields: Sequence[int]) -> None:
        _, _, application, number, thread_number, begin, end, state = fields
        task = self._task(application, number)
        thread = task.thread(thread_number)
        begin_ns, end_ns = self._ns(begin), self._ns(end)
        if begin_ns > thread.state[0] or not thread.state[1]:
            thread.before = thread.state[1]
        thread.state = begin_ns, state
        if state in STATES:
            kind, name = STATES[state]
            _add(task, kind, (begin_ns, end_ns, name, thread.place))

    def _add_events(self, fields: Sequence[int]) -> None:
        _, _, application, number, thread_number, time, *events = fields
        task = self._task(application, number)
        thread, now_ns = task.thread(thread_number), self._ns(time)
        values = dict(zip(events[::2], events[1::2], strict=True))
        ended = thread.before if thread.state[0] == now_ns else thread.state[1]
        is_useful = ended == RUNNING and now_ns > thread.counted_ns  # counters are of the time since those before them
        if any(kind in COUNTERS for kind in values):
            thread.counted_ns = now_ns
        for kind, value in values.items():
            if kind in MPI:
                self._add_call(task, thread, (now_ns, kind, value), values)
            elif kind in COUNTERS:
                if is_useful:
                    task.counters[kind] = task.counters.get(kind, 0) + value
            elif kind < 40000000 or kind >= 60000000:
                self.ignored[kind] = self.ignored.get(kind, 0) + 1

    def _add_call(self, task: _Task, thread: _Thread, event: tuple[int, int, int], values: dict[int, int]) -> None:
        now_ns, kind, value = event
        if thread.call:
            begin_ns, begun, number = thread.call
            name = self._labels.of(begun, number)
            _add(task, Kind.MESSAGE, (begin_ns, now_ns, name, thread.place, thread.group, thread.size))
        thread.call = (now_ns, kind, value) if value else None
        communicator = self._communicators.get(values.get(COMMUNICATOR, NONE))
        thread.group = task.rows.groups.of([communicator])[0] if communicator else NONE
        thread.size = max(values.get(size, NONE) for size in SIZES)

    def _add_message(self, fields: Sequence[int]) -> None:
        """Add a message to the sender's and the receiver's, from its sending to its arrival, with one correlation."""
        sender, receiver, size = fields[2:5], fields[8:11], fields[13]
        edges = self._ns(fields[6]), self._ns(fields[12])
        ranks = [sum(self._sizes[: one[0] - 1]) + one[1] - 1 for one in (sender, receiver)]
        tasks = [self._task(one[0], one[1]) for one in (sender, receiver)]
        self._messages += 1
        for task, one, name in zip(tasks, (sender, receiver), (f"to {ranks[1]}", f"from {ranks[0]}"), strict=True):
            place = task.thread(one[2]).place
            _add(task, Kind.ANNOTATION, (*edges, f"message {name}", place, NONE, size, self._messages))

    def traces(self, nodes: Sequence[str]) -> Iterator[RankTrace]:
        """Yield the trace of each task. Raises: MalformedError when there is none."""
        if not self.tasks:
            raise MalformedError(f"{self._path}: no states, events or messages after the header")
        places = [node for application in self._nodes for node in application]
        notes = [
            f"{count} events of type {kind} ({self._labels.types.get(kind, 'no label')}) are not analysed"
            for kind, count in self.ignored.items()
        ]
        for rank in sorted(self.tasks):
            task = self.tasks.pop(rank)
            for kind, waiting in task.waiting.items():
                _flush(task.rows, kind, waiting)
            node = places[rank] - 1 if rank < len(places) else NONE
            yield task.rows.trace(
                rank=rank,
                world_size=sum(self._sizes),
                node=nodes[node][:200] if 0 <= node < len(nodes) else "",
                format="paraver",
                resolution_ns=self._unit_ns,
                counters={self._counter(kind): float(total) for kind, total in task.counters.items()},
                notes=tuple(notes),
            )

    def _counter(self, kind: int) -> str:
        name = self._labels.types.get(kind, str(kind)).partition(" ")[0]
        return COUNTER_NAMES.get(name, name)


def _one_of(value: int, *values: int) -> int:
    if value not in values:
        raise ValueError(f"record {value}")
    return value


def _add(task: _Task, kind: Kind, row: tuple[Any, ...]) -> None:
    waiting = task.waiting.setdefault(kind, [])
    waiting.append(row)
    if len(waiting) >= 4096:
        _flush(task.rows, kind, waiting)


def _flush(rows: RankRows, kind: Kind, waiting: list[tuple[Any, ...]]) -> None:
    begins, ends, names, places, *more = zip(*waiting, strict=True)
    others = dict(zip(("group", "bytes", "correlation"), more, strict=False))
    rows.add(kind, (begins, ends), names, places, **others)
    waiting.clear()
