"""The places of other tools' series in our own sets, if name, labels and meaning are those of a column.

The inverse of `exposition.node_names` and `exposition.gpu_names`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from crosswind.data.schema.metric import Column, MetricSet, with_node_keys
from crosswind.ingest.collectors.cpu import CPU
from crosswind.ingest.collectors.disk import DISKS
from crosswind.ingest.collectors.frequency import FREQUENCY
from crosswind.ingest.collectors.infiniband import INFINIBAND
from crosswind.ingest.collectors.memory import MEMORY
from crosswind.ingest.collectors.network import NETWORK
from crosswind.ingest.collectors.nvml import GPU
from crosswind.ingest.collectors.pressure import PRESSURE
from crosswind.ingest.collectors.protocol import PROTOCOL
from crosswind.ingest.collectors.softnet import SOFTNET
from crosswind.ingest.collectors.thermal import THERMAL
from crosswind.ingest.exposition.gpu_names import GPU_NAMES
from crosswind.ingest.exposition.names import Labels, Name, Row
from crosswind.ingest.exposition.node_names import NODE_NAMES

TARGET_LABELS = {"instance", "job"}  # Prometheus' own labels for the origin of a series
WITHOUT_LABELS = ("node", "all", "tcp", "udp", "ip", "cpu", "io", "memory")  # sets with one device a node
# From the label names of a series to the device that has them.
DEVICES: Mapping[tuple[str, ...], Callable[[Mapping[str, str]], str]] = {
    ("cpu",): lambda labels: f"cpu{labels['cpu']}",
    ("device",): lambda labels: labels["device"],
    ("device", "port"): lambda labels: f"{labels['device']}/{labels['port']}",
    ("package",): lambda labels: f"package{labels['package']}",
    ("type", "zone"): lambda labels: f"{labels['type']}/thermal_zone{labels['zone']}",
    ("gpu", "uuid"): lambda labels: labels["uuid"],
    ("uuid",): lambda labels: labels["uuid"],
}
# DCGM's fields that are NVML's numbers in another unit: to our column, and by what to multiply.
# Source: dcgmlib/dcgm_fields.h and dcgmlib/src/dcgm_fields.cpp of https://github.com/NVIDIA/DCGM
DCGM = {
    "DCGM_FI_DEV_GPU_TEMP": ("temperature_celsius", 1.0),
    "DCGM_FI_DEV_MEMORY_TEMP": ("memory_temperature_celsius", 1.0),
    "DCGM_FI_DEV_SM_CLOCK": ("sm_clock_hertz", 1e6),
    "DCGM_FI_DEV_MEM_CLOCK": ("memory_clock_hertz", 1e6),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("energy_joules_total", 1e-3),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("pcie_replays_total", 1.0),
}
GPU_SET = with_node_keys(GPU)
# Of a whole GPU: parts made by MIG and the work of containers have more.
DCGM_LABELS = {"gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION", *TARGET_LABELS}


@dataclass(frozen=True)
class Place:
    """A column of a set of ours; the raw value is the sample's value divided by `unit`."""

    metric_set: MetricSet
    column: Column
    device: str
    unit: float


@dataclass(frozen=True)
class _Target:
    metric_set: MetricSet
    column: Column
    name: Name

    def place(self, family: str, labels: Mapping[str, str]) -> Place | None:
        fixed = dict(self.name.labels)
        own = {label: value for label, value in labels.items() if label not in fixed and label not in TARGET_LABELS}
        for device in _devices(own):
            expected = self.name.of(Row(device, _facts(own)))
            if expected is not None and dict(expected) == own and self.name.family_of(device) == family:
                return Place(self.metric_set, self.column, device, 1.0 if self.name.is_raw else self.column.scale)
        return None


def place_of(family: str, labels: Mapping[str, str]) -> Place | None:
    """Return the place of a series; None if it has none, or a label that would be lost there."""
    if family in DCGM and {"UUID", "Hostname"} <= labels.keys() <= DCGM_LABELS:
        name, factor = DCGM[family]
        column = GPU[name]
        return Place(GPU_SET, column, labels["UUID"], column.scale / factor)
    for fixed, target in _targets().get(family, ()):
        if all(labels.get(label) == value for label, value in fixed):
            return target.place(family, labels)
    return None


def _devices(own: Mapping[str, str]) -> Iterable[str]:
    if not own:
        return WITHOUT_LABELS
    of = DEVICES.get(tuple(sorted(own)))
    return () if of is None else (of(own),)


def _facts(own: Mapping[str, str]) -> dict[str, int]:
    index = own.get("gpu", "")
    return {"index": int(index)} if index.isdecimal() and index.isascii() else {}


@cache
def _targets() -> Mapping[str, list[tuple[Labels, _Target]]]:
    """Return the possible columns of a family name, by the labels that distinguish them."""
    targets: dict[str, list[tuple[Labels, _Target]]] = {}
    for metric_set, names in _sets():
        keyed = with_node_keys(metric_set)
        for column, name in names.items():
            for family in _families(name):
                targets.setdefault(family, []).append((name.labels, _Target(keyed, metric_set[column], name)))
    return targets


def _sets() -> Iterator[tuple[MetricSet, Mapping[str, Name]]]:
    for metric_set in (CPU, MEMORY, NETWORK, PROTOCOL, PRESSURE, DISKS, SOFTNET, INFINIBAND, FREQUENCY, THERMAL):
        yield metric_set, NODE_NAMES[metric_set.name]
    yield GPU, GPU_NAMES["gpu"]


def _families(name: Name) -> Iterator[str]:
    for device in WITHOUT_LABELS if name.part else ("",):
        family = name.family_of(device)
        if family is not None:
            yield family
