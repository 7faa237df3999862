"""The sets of the columns of an LDMS store: ours if its samplers' source says so, else its own."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import MAX_COLUMNS, NODE_KEYS, Column, Kind, MetricSet, with_node_keys
from crosswind.ingest.collectors.cpu import CPU
from crosswind.ingest.collectors.disk import DISKS
from crosswind.ingest.collectors.memory import EVENTS, MEMORY, POOL, SIZES
from crosswind.ingest.collectors.network import INTERFACE, NETWORK
from crosswind.ingest.readers.telemetry.ldms_header import PRODUCER, TIMES, Header, checked_set_name, safe_names

MEMORY_ROWS, CPU_ROWS, NETWORK_ROWS, DISK_ROWS = map(with_node_keys, (MEMORY, CPU, NETWORK, DISKS))
USER_HZ = 100  # of every architecture of Linux but alpha: include/asm-generic/param.h
TICKS = "sc_clk_tck"  # procstat's column of it, if it was selected
MEMINFO = {name.decode(): column.name for name, column in {**SIZES, **POOL}.items()}
VMSTAT = {name.decode(): column.name for name, column in EVENTS.items()}
MODES = ("user", "nice", "sys", "idle", "iowait", "irq", "softirq", "steal")  # like CPU's first columns
MODE_COLUMNS = tuple(column.name for column in CPU.columns[: len(MODES)])
NODE_WIDE = {
    "context_switches": "context_switches_total",
    "processes": "forks_total",
    "hwintr_count": "interrupts_total",
    "procs_running": "procs_running",
    "procs_blocked": "procs_blocked",
}
CORE = re.compile("per_core_user([0-9]+)")
NET_FIELDS = (
    *("rx_bytes", "rx_packets", "rx_errs", "rx_drop", "rx_fifo", "rx_frame", "rx_compressed", "rx_multicast"),
    *("tx_bytes", "tx_packets", "tx_errs", "tx_drop", "tx_fifo", "tx_colls", "tx_carrier", "tx_compressed"),
)  # in the order of /proc/net/dev
NET = {NET_FIELDS[place]: column.name for place, column in INTERFACE.items()}
DISK_FIELDS = (
    *("reads_comp", "reads_merg", "sect_read", "time_read", "writes_comp", "writes_merg", "sect_written"),
    *("time_write", "ios_in_progress", "time_ios", "weighted_time"),
)  # in the order of /proc/diskstats
DISK = dict(zip(DISK_FIELDS, (column.name for column in DISKS.columns), strict=False))
NET_LIST = "netdev_list_"
ENTRY = "_entry_idx"
TEXTS = Column(
    "texts", "cells that are no number, or one that was rounded: a JSON object by column", Kind.FACT, "string"
)
MOST = 20_000  # columns of a file that are kept apart: a node of 1000 cores in procstat has 11 000
ROOM = MAX_COLUMNS - len(NODE_KEYS) - 1
IDENTITY = frozenset(column.name for column in (*NODE_KEYS, TEXTS))


@dataclass(frozen=True)
class Share:
    """The contribution of each line to one row of a set: places of the line by the set's columns."""

    metric_set: MetricSet
    places: Mapping[str, int]
    device: str = ""
    device_place: int | None = None
    nothing_if_zero: tuple[int, ...] = ()  # places that are all 0 if there is no such device


@dataclass(frozen=True)
class Layout:
    """The destinations of the columns below one header."""

    header: Header
    shares: tuple[Share, ...]

    @property
    def rest(self) -> dict[str, int]:
        """Return the places of the columns that no set of ours has, by their names."""
        taken = {place for share in self.shares for place in share.places.values()}
        taken |= {place for share in self.shares if (place := share.device_place) is not None}
        never = {*TIMES, "Time_usec", PRODUCER}
        return {name: place for place, name in enumerate(self.header.names) if place not in taken and name not in never}

    @property
    def names_devices(self) -> bool:
        """Return whether columns are named after devices, as in rx_bytes#eth0."""
        return any("#" in name for name in self.header.names)

    @property
    def entry(self) -> int | None:
        """Return the place of the number of a list's entry in a line."""
        return next((place for place, name in enumerate(self.header.names) if name.endswith(ENTRY)), None)

    def types(self) -> list[str]:
        """Return the type of each column: that of our sets, and float64 for any other number."""
        types = ["float64"] * len(self.header.names)
        for share in self.shares:
            for name, place in share.places.items():
                types[place] = share.metric_set[name].dtype
            if share.device_place is not None:
                types[share.device_place] = "string"
        types[self.header.names.index(PRODUCER)] = "string"
        return types


def layout(header: Header, ticks: int | None) -> Layout:
    """Return the destinations of the columns; `ticks` is the first line's number of clock ticks a second.

    Source: the samplers meminfo, vmstat, procstat, procnetdev, procnetdev2 and procdiskstats in LDMS's
    ldms/src/sampler: each copies the file below /proc that it is named after.
    """
    places = {name: place for place, name in enumerate(header.names)}
    shares = [*_whole_node(places), *_cpu(places, ticks), *_devices(places), *_listed(places)]
    return Layout(header, tuple(shares))


def remark_on_ticks(file_layout: Layout) -> str:
    """Return a remark on the assumed unit of processor times; empty if there are none."""
    if not set(MODES) <= set(file_layout.header.names):
        return ""
    if not any(share.metric_set is CPU_ROWS for share in file_layout.shares):
        return f"processor times are not in ticks of 1/{USER_HZ} s: they are in the schema's own set alone"
    if TICKS in file_layout.header.names:
        return ""
    return f"processor times are taken for ticks of 1/{USER_HZ} s, as on all Linux but alpha; {TICKS}=1 would show"


def rest_sets(schema: str, layouts: Sequence[Layout]) -> tuple[tuple[MetricSet, Mapping[str, str]], ...]:
    """Return the schema's own sets, with the name in the file of each column; several if one would be too wide.

    Raises: MalformedError when the schema's name cannot be one, or there are too many columns.
    """
    names = list(dict.fromkeys(name for file_layout in layouts for name in file_layout.rest))
    if len(names) > MOST:
        raise MalformedError(f"schema {schema[:80]!r}: {len(names)} columns in its headers; expected {MOST} at most")
    columns = safe_names(names, IDENTITY)
    first = checked_set_name(schema)
    made = []
    for number, start in enumerate(range(0, len(names), ROOM), 1):
        part = {columns[name]: name for name in names[start : start + ROOM]}
        made.append((_rest_set(first if number == 1 else f"{first}_{number}", schema, part), part))
    return tuple(made)


def _rest_set(name: str, schema: str, columns: Mapping[str, str]) -> MetricSet:
    described = [Column(column, description[:200], dtype="float64") for column, description in columns.items()]
    about = f"Schema {schema[:100]} of an LDMS store, in whatever units its sampler has."
    return MetricSet(name, about, (*NODE_KEYS, TEXTS, *described))


def _mapped(names: Mapping[str, str], places: Mapping[str, int], form: str = "{}") -> dict[str, int]:
    """Return the places of those names that are there, by their columns; a column may have several names."""
    return {column: places[formatted] for name, column in names.items() if (formatted := form.format(name)) in places}


def _whole_node(places: Mapping[str, int]) -> Iterator[Share]:
    memory = _mapped(MEMINFO, places) if {"MemTotal", "MemFree"} <= places.keys() else {}
    memory |= _mapped(VMSTAT, places) if {"nr_free_pages", "pgfault"} <= places.keys() else {}
    if memory:
        yield Share(MEMORY_ROWS, memory, "node")


def _cpu(places: Mapping[str, int], ticks: int | None) -> Iterator[Share]:
    if not set(MODES) <= places.keys() or round(1 / CPU.columns[0].scale) != (ticks or USER_HZ):
        return
    yield Share(CPU_ROWS, _mapped(dict(zip(MODES, MODE_COLUMNS, strict=True)) | NODE_WIDE, places), "all")
    fields = {
        ("softirqd" if name == "softirq" else name): column for name, column in zip(MODES, MODE_COLUMNS, strict=True)
    }
    for core in sorted(int(match[1]) for match in map(CORE.fullmatch, places) if match):
        enabled = places.get(f"per_core_cpu_enabled{core}")
        condition = () if enabled is None else (enabled,)
        yield Share(CPU_ROWS, _mapped(fields, places, f"per_core_{{}}{core}"), f"cpu{core}", nothing_if_zero=condition)


def _devices(places: Mapping[str, int]) -> Iterator[Share]:
    for metric_set, names, first in ((NETWORK_ROWS, NET, NET_FIELDS), (DISK_ROWS, DISK, DISK_FIELDS)):
        mark = f"{first[0]}#"
        for device in (name.removeprefix(mark) for name in places if name.startswith(mark)):
            by_field = {field: places[label] for field in first if (label := f"{field}#{device}") in places}
            if len(by_field) == len(first) and device:
                wanted = {column: by_field[name] for name, column in names.items()}
                zero = tuple(by_field.values()) if metric_set is NETWORK_ROWS else ()
                yield Share(metric_set, wanted, device[:200], nothing_if_zero=zero)


def _listed(places: Mapping[str, int]) -> Iterator[Share]:
    name = places.get(f"{NET_LIST}name")
    if name is not None and all(f"{NET_LIST}{field}" in places for field in NET):
        yield Share(NETWORK_ROWS, _mapped(NET, places, f"{NET_LIST}{{}}"), device_place=name)
