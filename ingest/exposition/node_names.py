"""The names and labels of node_exporter, so that dashboards and alerts made for it work here.

Source: collector/*.go of https://github.com/prometheus/node_exporter, 1.5
"""

import re
from collections.abc import Mapping
from functools import cache

from crosswind.ingest.collectors.memory import EVENTS, POOL, SIZES
from crosswind.ingest.collectors.network import INTERFACE
from crosswind.ingest.exposition.names import Labels, LabelsOf, Name, Row, of_node
from crosswind.ingest.kernel.protocols import IP, TCP, UDP

# Left out by node_exporter: partitions, and devices that are no disk.
NO_DISK = re.compile(r"(ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+")
PLACES = {  # of /proc/net/dev
    0: "receive_bytes",
    1: "receive_packets",
    2: "receive_errs",
    3: "receive_drop",
    4: "receive_fifo",
    5: "receive_frame",
    8: "transmit_bytes",
    9: "transmit_packets",
    10: "transmit_errs",
    11: "transmit_drop",
    12: "transmit_fifo",
    14: "transmit_carrier",
}
RESOURCES = {"cpu", "io", "memory"}
UNTYPED = "untyped"
CORES, CALLS = "time of each core by mode", "NFS calls of the node by method"
PRESSURE = {
    "waiting": "time in which some task waited for it",
    "stalled": "time in which no task got on for lack of it",
}


def _core(row: Row) -> Labels | None:
    number = row.device.removeprefix("cpu")
    return (("cpu", number),) if number.isdigit() and number != row.device else None


@cache  # so that a row is labelled once, not once a column
def _only(device: str) -> LabelsOf:
    return lambda row: () if row.device == device else None


def _package(row: Row) -> Labels | None:
    number = row.device.removeprefix("package")
    return (("package", number),) if number.isdigit() and number != row.device else None


def _interface(row: Row) -> Labels | None:
    return (("device", row.device),)


def _disk(row: Row) -> Labels | None:
    return None if NO_DISK.fullmatch(row.device) else (("device", row.device),)


def _mount(row: Row) -> Labels | None:
    facts = row.facts
    return (
        ("device", str(facts.get("mounted_from") or "")),
        ("fstype", str(facts.get("filesystem_type") or "")),
        ("mountpoint", row.device),
    )


def _port(row: Row) -> Labels | None:
    adapter, mark, port = row.device.rpartition("/")
    return (("device", adapter), ("port", port)) if mark and port.isdigit() else None


def _sensor(row: Row) -> Labels | None:
    chip, _, sensor = row.device.rpartition("/")
    return (("chip", chip), ("sensor", sensor))


def _zone(row: Row) -> Labels | None:
    kind, _, zone = row.device.rpartition("/")
    return (("type", kind), ("zone", zone.removeprefix("thermal_zone")))


def _rapl_index(row: Row) -> Labels | None:
    return (("index", match[1] if (match := re.search(r"-(\d+)", row.device)) else "0"),)


def _rapl_zone(device: str) -> str | None:
    zone = re.sub(r"(-\d+)?( \(.*\))?$", "", device.rpartition("/")[2])
    return re.sub(r"[^a-zA-Z0-9_]", "_", zone) or None


def _resource(device: str) -> str | None:
    return device if device in RESOURCES else None


def _cpu() -> dict[str, Name]:
    modes = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
    every = _only("all")
    return {
        **{
            f"{mode}_seconds_total": Name("node_cpu_seconds_total", _core, (("mode", mode),), help=CORES)
            for mode in modes
        },
        "context_switches_total": Name("node_context_switches_total", every),
        "forks_total": Name("node_forks_total", every),
        "interrupts_total": Name("node_intr_total", every),
        **{
            name: Name(f"node_{name}", every) for name in ("procs_running", "procs_blocked", "load1", "load5", "load15")
        },
    }


def _memory() -> dict[str, Name]:
    events = {key: column for key, column in EVENTS.items() if key != b"workingset_refault"}
    return {
        **{column.name: Name(f"node_memory_{key.decode()}_bytes", of_node) for key, column in SIZES.items()},
        **{column.name: Name(f"node_memory_{key.decode()}", of_node) for key, column in POOL.items()},
        **{
            column.name: Name(f"node_vmstat_{key.decode()}", of_node, kind=UNTYPED, is_raw=True)
            for key, column in events.items()
        },
    }


def _network() -> dict[str, Name]:
    return {
        **{INTERFACE[place].name: Name(f"node_network_{name}_total", _interface) for place, name in PLACES.items()},
        "carrier_changes_total": Name("node_network_carrier_changes_total", _interface),
        "speed_bytes_per_second": Name("node_network_speed_bytes", _interface),
        "mtu_bytes": Name("node_network_mtu_bytes", _interface),
        "carrier": Name("node_network_carrier", _interface),
    }


def _protocol() -> dict[str, Name]:
    protocols = (("tcp", TCP), ("udp", UDP), ("ip", IP))
    return {
        column.name: Name(f"node_netstat_{key.decode().replace('.', '_')}", _only(device), kind=UNTYPED, is_raw=True)
        for device, columns in protocols
        for key, column in columns.items()
    }


def _named(prefix: str, of: LabelsOf, names: Mapping[str, str]) -> dict[str, Name]:
    return {column: Name(prefix + name, of) for column, name in names.items()}


DISK = {
    "reads_total": "reads_completed_total",
    "merged_reads_total": "reads_merged_total",
    "read_bytes_total": "read_bytes_total",
    "read_seconds_total": "read_time_seconds_total",
    "writes_total": "writes_completed_total",
    "merged_writes_total": "writes_merged_total",
    "written_bytes_total": "written_bytes_total",
    "write_seconds_total": "write_time_seconds_total",
    "requests_in_flight": "io_now",
    "busy_seconds_total": "io_time_seconds_total",
    "request_seconds_total": "io_time_weighted_seconds_total",
    "discards_total": "discards_completed_total",
    "merged_discards_total": "discards_merged_total",
    "discard_seconds_total": "discard_time_seconds_total",
    "flushes_total": "flush_requests_total",
    "flush_seconds_total": "flush_requests_time_seconds_total",
}
INFINIBAND = {
    "state_id": "state_id",
    "physical_state_id": "physical_state_id",
    "rate_bytes_per_second": "rate_bytes_per_second",
    "transmit_bytes_total": "port_data_transmitted_bytes_total",
    "receive_bytes_total": "port_data_received_bytes_total",
    "transmit_packets_total": "port_packets_transmitted_total",
    "receive_packets_total": "port_packets_received_total",
    "unicast_transmit_packets_total": "unicast_packets_transmitted_total",
    "unicast_receive_packets_total": "unicast_packets_received_total",
    "multicast_transmit_packets_total": "multicast_packets_transmitted_total",
    "multicast_receive_packets_total": "multicast_packets_received_total",
    "transmit_wait_total": "port_transmit_wait_total",
    "transmit_discards_total": "port_discards_transmitted_total",
    "receive_errors_total": "port_errors_received_total",
    "transmit_constraint_errors_total": "port_constraint_errors_transmitted_total",
    "receive_constraint_errors_total": "port_constraint_errors_received_total",
    "link_error_recoveries_total": "link_error_recovery_total",
    "link_downed_total": "link_downed_total",
    "receive_remote_physical_errors_total": "port_receive_remote_physical_errors_total",
    "receive_switch_relay_errors_total": "port_receive_switch_relay_errors_total",
    "symbol_errors_total": "symbol_error_total",
    "vl15_dropped_total": "vl15_dropped_total",
    "excessive_buffer_overrun_errors_total": "excessive_buffer_overrun_errors_total",
    "local_link_integrity_errors_total": "local_link_integrity_errors_total",
}
HWMON = {  # without humidity, which node_exporter shows as a tenth of the ratio that it promises
    "temperature_celsius": "temp_celsius",
    "fan_rpm": "fan_rpm",
    "voltage_volts": "in_volts",
    "current_amperes": "curr_amps",
    "power_watts": "power_watt",
    "average_power_watts": "power_average_watt",
    "energy_joules_total": "energy_joule_total",
}
SOFTNET = {
    "processed_packets_total": "processed_total",
    "dropped_packets_total": "dropped_total",
    "squeezed_total": "times_squeezed_total",
    "steered_wakeups_total": "received_rps_total",
    "flow_limited_packets_total": "flow_limit_count_total",
    "backlog_packets": "backlog_len",
}
FILESYSTEM = {
    "size_bytes": "size_bytes",
    "free_bytes": "free_bytes",
    "available_bytes": "avail_bytes",
    "files": "files",
    "free_files": "files_free",
    "is_read_only": "readonly",
}
FREQUENCY = {
    "frequency_hertz": Name("node_cpu_scaling_frequency_hertz", _core),
    "throttles_total": Name("node_cpu_package_throttles_total", _package),
}
NFS_CALLS = {
    "3": {"getattr": "GetAttr", "lookup": "Lookup", "access": "Access", "read": "Read", "write": "Write"}
    | {"create": "Create", "readdir": "ReadDir", "commit": "Commit"},
    "4": {"read": "Read", "write": "Write", "commit": "Commit", "open": "Open", "close": "Close"}
    | {"access": "Access", "getattr": "Getattr", "lookup": "Lookup"},
}
NFS = {
    "rpc_calls_total": Name("node_nfs_rpcs_total", _only("all")),
    "rpc_retransmissions_total": Name("node_nfs_rpc_retransmissions_total", _only("all")),
    "rpc_auth_refreshes_total": Name("node_nfs_rpc_authentication_refreshes_total", _only("all")),
    **{
        f"v{version}_{name}_calls_total": Name(
            "node_nfs_requests_total", _only("all"), (("method", method), ("proto", version)), help=CALLS
        )
        for version, methods in NFS_CALLS.items()
        for name, method in methods.items()
    },
}
NODE_NAMES: Mapping[str, Mapping[str, Name]] = {
    "cpu": _cpu(),
    "memory": _memory(),
    "network": _network(),
    "protocol": _protocol(),
    "pressure": {
        f"{what}_seconds_total": Name(
            f"node_pressure_{{part}}_{what}_seconds_total", of_node, part=_resource, help=text
        )
        for what, text in PRESSURE.items()
    },
    "disk": _named("node_disk_", _disk, DISK)
    | {"discarded_bytes_total": Name("node_disk_discarded_sectors_total", _disk, is_raw=True)},
    "softnet": _named("node_softnet_", _core, SOFTNET),
    "filesystem": _named("node_filesystem_", _mount, FILESYSTEM),
    "infiniband": _named("node_infiniband_", _port, INFINIBAND),
    "hwmon": _named("node_hwmon_", _sensor, HWMON),
    "thermal": {"temperature_celsius": Name("node_thermal_zone_temp", _zone)},
    "rapl": {"energy_joules_total": Name("node_rapl_{part}_joules_total", _rapl_index, part=_rapl_zone)},
    "frequency": FREQUENCY,
    "nfs": NFS,
}
