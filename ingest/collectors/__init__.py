"""Live sources of this node: our own in an explicit list, other people's by entry points of `crosswind.collectors`."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from crosswind.data.errors import InvalidInputError
from crosswind.data.metric import NODE_KEYS, Collector, MetricSet
from crosswind.ingest.collectors.cpu import CpuCollector
from crosswind.ingest.collectors.memory import MemoryCollector
from crosswind.ingest.collectors.network import NetworkCollector
from crosswind.ingest.collectors.pressure import PressureCollector
from crosswind.ingest.collectors.process import ProcessCollector, no_pids

ENTRY_POINT_GROUP = "crosswind.collectors"


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """Whether a source can be read on this node, and if not, why."""

    name: str
    available: bool
    reason: str | None = None


def node_collectors(proc: Path = Path("/proc"), *, pids: Callable[[], Iterable[int]] = no_pids) -> list[Collector]:
    """Our own collectors; the processes to watch are asked for at every sweep."""
    return [
        CpuCollector(proc),
        MemoryCollector(proc),
        PressureCollector(proc),
        NetworkCollector(proc),
        ProcessCollector(pids, proc),
    ]


def plugged_in_collectors(taken: Iterable[str]) -> tuple[list[Collector], list[SourceStatus]]:
    """Other people's collectors, and what is wrong with those that cannot be used.

    An entry point names a callable without arguments that makes a collector. `taken` are the set names in use.
    """
    names = set(taken)
    collectors, refused = [], []
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            collector = _made_by(point, names)
        except Exception as error:  # noqa: BLE001 - a stranger's module may raise anything, and must not stop ours
            refused.append(SourceStatus(point.name, False, reason_of(error)))
        else:
            names.add(collector.metric_set.name)
            collectors.append(collector)
    return collectors, refused


def survey(proc: Path = Path("/proc")) -> list[SourceStatus]:
    """Every source, ours and other people's, read once: whether it works here, and if not, why."""
    ours = node_collectors(proc)
    others, refused = plugged_in_collectors(collector.metric_set.name for collector in ours)
    return [*_statuses([*ours, *others]), *refused]


def reason_of(error: Exception) -> str:
    """What went wrong in one line of bounded length, with the kind of error."""
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:500]


def _statuses(collectors: Iterable[Collector]) -> Iterator[SourceStatus]:
    for collector in collectors:
        try:
            for _ in collector.read():
                pass
        except Exception as error:  # noqa: BLE001 - the survey reports whatever a source raises
            yield SourceStatus(collector.metric_set.name, False, reason_of(error))
        else:
            yield SourceStatus(collector.metric_set.name, True)


def _made_by(point: EntryPoint, taken: set[str]) -> Collector:
    collector: Collector = point.load()()
    metric_set = getattr(collector, "metric_set", None)
    if not isinstance(metric_set, MetricSet) or not callable(getattr(collector, "read", None)):
        raise InvalidInputError(
            f"{point.value}: expected a collector with metric_set and read, found {collector!r:.80}"
        )
    if metric_set.name in taken:
        raise InvalidInputError(f"{point.value}: metric set {metric_set.name} is another collector's")
    keys = {key.name for key in NODE_KEYS}.intersection(column.name for column in metric_set.columns)
    if keys:
        raise InvalidInputError(f"{point.value}: columns {sorted(keys)} are added by the agent")
    return collector
