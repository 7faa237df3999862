"""Live sources of this node: our own in an explicit list, other people's by entry points of `crosswind.collectors`."""

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import NODE_KEYS, Collector, MetricSet
from crosswind.ingest.collectors import (
    amd_gpu,
    cgroup,
    cpu,
    cxi,
    disk,
    ethtool,
    facility,
    filesystem,
    frequency,
    gpu_process,
    hwmon,
    infiniband,
    ipmi,
    lustre,
    lustre_targets,
    memory,
    network,
    nfs,
    nvml,
    occupancy,
    omnipath,
    perf,
    pm_counters,
    pressure,
    process,
    protocol,
    qdisc,
    rapl,
    redfish,
    softnet,
    thermal,
)
from crosswind.ingest.collectors.source import Host, Options, Source

SOURCES = (
    cpu.SOURCE,
    memory.SOURCE,
    pressure.SOURCE,
    network.SOURCE,
    protocol.SOURCE,
    process.SOURCE,
    occupancy.SOURCE,
    rapl.SOURCE,
    pm_counters.SOURCE,
    hwmon.SOURCE,
    thermal.SOURCE,
    frequency.SOURCE,
    disk.SOURCE,
    softnet.SOURCE,
    filesystem.SOURCE,
    perf.SOURCE,
    infiniband.SOURCE,
    omnipath.SOURCE,
    cxi.SOURCE,
    ipmi.SOURCE,
    redfish.SOURCE,
    nvml.SOURCE,
    gpu_process.SOURCE,
    amd_gpu.SOURCE,
    cgroup.SOURCE,
    ethtool.SOURCE,
    qdisc.SOURCE,
    lustre.SOURCE,
    lustre_targets.SOURCE,
    nfs.SOURCE,
    facility.SOURCE,
)
ENTRY_POINT_GROUP = "crosswind.collectors"
OTHERS_SECONDS = 5.0  # the longest read of another package's collector


@dataclass(frozen=True, slots=True)
class Refused:
    """Another package's source that cannot be used, and why."""

    name: str
    reason: str


def plugged_in_sources(taken: Iterable[str]) -> tuple[list[Source], list[Refused]]:
    """Return other packages' sources, and the errors of those that cannot be used.

    An entry point names a callable without arguments that makes a collector. `taken` are the names in use.
    """
    names = set(taken)
    sources, refused = [], []
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            collector = _made_by(point, names)
        except Exception as error:  # noqa: BLE001 - another package may raise anything, and must not stop us
            refused.append(Refused(point.name, reason_of(error)))
        else:
            names.add(collector.metric_set.name)
            sources.append(_source_of(collector))
    return sources, refused


def made(source: Source, host: Host, options: Options) -> Collector:
    """Make the source's collector. Raises: InvalidInputError for an unknown option."""
    unknown = sorted(options.values.keys() - source.options)
    if unknown:
        names = ", ".join(source.options) or "none of its own"
        raise InvalidInputError(f"sources.{source.name}.{unknown[0]}: unknown; its options are: {names}")
    return source.make(host, options)


def reason_of(error: Exception) -> str:
    """Return the kind and text of an error in one line of bounded length."""
    return f"{type(error).__name__}: {error}".replace("\n", " ")[:500]


def _source_of(collector: Collector) -> Source:
    return Source(
        collector.metric_set.name,
        lambda host, options: collector,  # noqa: ARG005 - it knows its own place
        advice="ask its author",
        timeout_seconds=OTHERS_SECONDS,
    )


def _made_by(point: EntryPoint, taken: set[str]) -> Collector:
    collector: Collector = point.load()()
    metric_set = getattr(collector, "metric_set", None)
    if not isinstance(metric_set, MetricSet) or not callable(getattr(collector, "read", None)):
        raise InvalidInputError(
            f"{point.value}: expected a collector with metric_set and read, found {collector!r:.80}"
        )
    if metric_set.name in taken:
        raise InvalidInputError(f"{point.value}: metric set {metric_set.name} is another collector's")
    _refuse_node_keys(point, metric_set)
    return collector


def _refuse_node_keys(point: EntryPoint, metric_set: MetricSet) -> None:
    keys = {key.name for key in NODE_KEYS}.intersection(column.name for column in metric_set.columns)
    if keys:
        raise InvalidInputError(f"{point.value}: columns {sorted(keys)} are added by the agent")
