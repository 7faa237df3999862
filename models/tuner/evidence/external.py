"""The causes of a slow run that a configuration cannot have made, and why."""

from collections.abc import Collection, Mapping

# Against other runs of the same configuration no excess is the configuration's. Left out are those of the program
# itself, which a repeat would meet again: its own marked work, compilation, allocation, uneven data, other software.
AGAINST_ITS_OWN: Mapping[str, str] = {
    "cpu_contention": "other runs of the configuration waited less for cores",
    "cpu_quota": "other runs of the configuration were stopped less",
    "cpu_steal": "the hypervisor gives cores to other guests",
    "heat_throttling": "cooling differs between nodes and hours",
    "power_cap": "limits differ between nodes",
    "low_clock": "clocks differ between nodes",
    "swap": "the same configuration needs the same memory",
    "major_faults": "files were in memory for the other runs",
    "memory_pressure": "the same configuration needs the same memory",
    "slow_storage": "the same configuration reads the same",
    "slow_input": "the same configuration reads the same",
    "busy_loaders": "the same configuration decodes the same",
    "slow_checkpoint": "the same configuration writes the same",
    "neighbour_traffic": "the links carried more than the run sends",
    "packet_loss": "links and switches lose packets",
    "link_rate": "links were slower than for the other runs",
    "retransmission": "links and switches lose or delay packets",
    "congestion": "links and switches asked senders to wait",
    "network": "the same configuration sends the same",
    "stall": "a process was stopped or a device hung, once",
    "slow_node": "the node is slow in other runs, too",
    "slow_compute": "the same configuration computes the same",
    "placement": "other placements are quicker",
}

# Against runs of other configurations: only what no configuration makes by itself, with what its evidence counts.
AGAINST_OTHERS: Mapping[str, tuple[str, ...]] = {
    "cpu_steal": (),
    "heat_throttling": (),
    "power_cap": (),
    "stall": (),
    "neighbour_traffic": ("link_busy",),
    "packet_loss": ("out_of_order", "timeouts"),
    "link_rate": ("overlimits",),
    "retransmission": ("retransmits", "retries"),
    "congestion": ("pauses", "marks", "port_waits"),
}

# One rank against the others of its run, where ranks of other configurations do not differ: they do the same work.
ON_ONE_RANK = frozenset(
    {"cpu_contention", "cpu_quota", "slow_compute", "slow_input", "slow_checkpoint", "slow_node", "stall"}
)

# Words in the name of a tuned parameter that may make the cause after all.
MADE_BY: Mapping[str, tuple[str, ...]] = {
    "cpu_quota": ("cpu", "core"),
    "power_cap": ("power", "watt"),
    "low_clock": ("clock", "hertz", "mhz", "power", "watt"),
    "placement": ("node", "placement"),
}


def is_made_by(cause: str, parameters: Collection[str]) -> bool:
    """Return whether one of the tuned parameters may make this cause."""
    return any(word in name.lower() for name in parameters for word in MADE_BY.get(cause, ()))
