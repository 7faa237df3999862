"""Traces in OTF2, as Score-P records them, by the format's own library (`pip install 'crosswind[otf2]'`).

A rank is a process (location group). Calls of MPI are messages; what passes between them within a region is useful
computation, over which counters of PAPI are summed. Source: https://perftools.pages.jsc.fz-juelich.de/cicd/otf2
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.traces.trace import NONE, Kind, Place, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.rank_rows import RankRows

COUNTER_NAMES = {"PAPI_TOT_INS": "instructions", "PAPI_TOT_CYC": "cycles"}
BLOCK = 8192


@dataclass(frozen=True)
class Otf2Reader:
    """One archive is a run; the file is its anchor, `traces.otf2`."""

    name: ClassVar[str] = "otf2"
    version: ClassVar[int] = 1
    companions: ClassVar[tuple[str, ...]] = (".def",)
    description: ClassVar[str] = "the anchor file of an OTF2 archive (.otf2)"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Return whether it is an anchor file."""
        return path.suffix == ".otf2" and head[2:6] == b"OTF2"

    def read(self, path: Path, report: Report) -> Iterator[RankTrace]:
        """Yield a trace for each process. Raises: MalformedError, UnavailableError without the library."""
        try:
            import _otf2  # noqa: PLC0415  of an extra
            import otf2  # noqa: PLC0415
        except ImportError as error:
            raise UnavailableError(f"{path}: an OTF2 archive needs pip install 'crosswind[otf2]'") from error
        try:
            with otf2.reader.open(str(path)) as archive:
                collected = _Archive(str(path), archive)
                for location, event in archive.events:
                    collected.add(location, event)
                traces = collected.traces(report)
        except (RuntimeError, ValueError, OSError, AttributeError, otf2.error.Error, _otf2.ErrorCodes.Error) as error:
            raise MalformedError(f"{path}: {error}; expected an OTF2 archive") from error
        yield from traces


@dataclass
class _Thread:
    """The regions in which a thread is, each with its begin in ns."""

    process: "_Process"
    place: Place
    regions: list[tuple[Any, int]] = field(default_factory=list)
    calls: int = 0  # of MPI, in which it is
    useful_ns: int = NONE  # since when it computes
    counts: dict[str, float] = field(default_factory=dict)

    def enter(self, region: Any, now_ns: int) -> None:
        """Begin a region."""
        is_call = _is_call(region)
        if is_call:
            self._end_useful(now_ns)
            self.calls += 1
        self.regions.append((region, now_ns))
        if not is_call and not self.calls and self.useful_ns == NONE:
            self.useful_ns = now_ns

    def leave(self, now_ns: int) -> None:
        """End the innermost region. Raises: ValueError without one."""
        if not self.regions:
            raise ValueError(f"{self.place.label}: leaves a region without having entered one")
        region, begin_ns = self.regions.pop()
        self.calls -= _is_call(region)
        if not self.regions:
            self._end_useful(now_ns)
        elif not self.calls and self.useful_ns == NONE:
            self.useful_ns = now_ns
        self.process.add(Kind.MESSAGE if _is_call(region) else Kind.FRAME, (begin_ns, now_ns, region.name, self.place))

    def count(self, values: dict[str, float]) -> None:
        """Take counters, which grow."""
        if self.useful_ns != NONE and not self.calls:
            totals = self.process.counters
            for name, value in values.items():
                totals[name] = totals.get(name, 0.0) + value - self.counts.get(name, value)
        self.counts |= values

    def _end_useful(self, now_ns: int) -> None:
        if self.useful_ns != NONE:
            self.process.add(Kind.USEFUL, (self.useful_ns, now_ns, "useful", self.place))
        self.useful_ns = NONE


@dataclass
class _Process:
    rows: RankRows
    node: str
    counters: dict[str, float] = field(default_factory=dict)
    waiting: dict[Kind, list[tuple[Any, ...]]] = field(default_factory=dict)

    def add(self, kind: Kind, row: tuple[Any, ...]) -> None:
        """Add an event: begin, end, name and place."""
        waiting = self.waiting.setdefault(kind, [])
        waiting.append(row)
        if len(waiting) >= BLOCK:
            self.flush(kind)

    def flush(self, kind: Kind) -> None:
        """Move waiting events into columns."""
        begins, ends, names, places = zip(*self.waiting[kind], strict=True)
        self.rows.add(kind, (begins, ends), [name[:1000] for name in names], places)
        self.waiting[kind].clear()


class _Archive:
    def __init__(self, source: str, archive: Any) -> None:
        self._source, self._ticks = source, archive.timer_resolution
        self._processes: dict[str, _Process] = {}
        self._threads: dict[Any, _Thread] = {}
        for location in archive.definitions.locations:  # processes in the order of their ranks
            self._thread(location)

    def add(self, location: Any, event: Any) -> None:
        """Add an event of a location."""
        kind = type(event).__name__
        if kind not in ("Enter", "Leave", "Metric"):
            return
        thread = self._thread(location)
        now_ns = event.time * 1_000_000_000 // self._ticks
        if kind == "Enter":
            thread.enter(event.region, now_ns)
        elif kind == "Leave":
            thread.leave(now_ns)
        else:
            thread.count(_values(event))

    def _thread(self, location: Any) -> _Thread:
        if location not in self._threads:
            group = location.group
            if group.name not in self._processes:
                node = group.system_tree_parent.name if group.system_tree_parent else ""
                self._processes[group.name] = _Process(RankRows(self._source), node[:200])
            place = Place(f"{location.name} {len(self._threads)}", NONE, NONE)
            self._threads[location] = _Thread(self._processes[group.name], place)
        return self._threads[location]

    def traces(self, report: Report) -> list[RankTrace]:
        """Return the traces. Raises: ValueError when nothing is in it."""
        unclosed = sum(len(thread.regions) for thread in self._threads.values())
        notes = (f"{unclosed} regions never end",) if unclosed else ()
        traces = [self._trace(rank, process, notes, report) for rank, process in enumerate(self._processes.values())]
        if not report.read:
            raise ValueError("no regions are entered and left")
        return [trace for trace in traces if len(trace.events)]

    def _trace(self, rank: int, process: _Process, notes: tuple[str, ...], report: Report) -> RankTrace:
        for kind in [kind for kind, waiting in process.waiting.items() if waiting]:
            process.flush(kind)
        report.read += process.rows.count
        return process.rows.trace(
            rank=rank,
            world_size=len(self._processes),
            node=process.node,
            format="otf2",
            counters=process.counters,
            notes=notes,
        )


def _is_call(region: Any) -> bool:
    return str(region.paradigm).endswith(".MPI")


def _values(event: Any) -> dict[str, float]:
    metric = event.metric
    members = metric.metric_class.members if hasattr(metric, "metric_class") else metric.members
    names = [COUNTER_NAMES.get(member.name, member.name) for member in members]
    return {name: float(value) for name, value in zip(names, event.values, strict=True)}
