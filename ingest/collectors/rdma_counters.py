"""Counters of RDMA devices' ports, their width and format: for InfiniBand, RoCE and Omni-Path.

Source: Documentation/ABI/stable/sysfs-class-infiniband; drivers/infiniband/core/sysfs.c, which has the widths;
InfiniBand Architecture Specification 1, PortCounters: they saturate until somebody clears them.
"""

from collections.abc import Callable, Mapping

from crosswind.data.schema.metric import Column, Kind, OnFull

WORD_BYTES = 4  # data is counted in words of 4 octets
NARROW_RANGE = 2**32
MEGABIT_BYTES = 125_000
MAX_TEXT = 200
Parse = Callable[[bytes], int | str | None]


def saturating(name: str, description: str, width_bits: int) -> Column:
    """Return a column for a counter that saturates."""
    return Column(name, description, Kind.COUNTER, dtype="uint64", width_bits=width_bits, on_full=OnFull.SATURATE)


def words(name: str, description: str, range_from: str = "") -> Column:
    """Return a column for a counter of 4-octet words."""
    return Column(
        name,
        description,
        Kind.COUNTER,
        dtype="uint64",
        unit="bytes",
        scale=WORD_BYTES,
        on_full=OnFull.SATURATE,
        range_from=range_from,
    )


def packets(name: str, description: str) -> Column:
    """Return a column for a counter of packets, as wide as the port's data counters."""
    return Column(name, description, Kind.COUNTER, dtype="uint64", on_full=OnFull.SATURATE, range_from="packets_range")


REGISTRATION = Column(
    "registration", "the driver's entry for the port; another after its reload", Kind.EPOCH, dtype="uint64"
)
# Ports without extended counters count to 2^32; an empty cell in these columns means 2^64.
RANGES = (
    Column("data_range_bytes", "end of the data counters", Kind.FACT, unit="bytes", scale=WORD_BYTES),
    Column("packets_range", "end of the packet counters", Kind.FACT),
)
TRAFFIC = {
    "port_xmit_data": words("transmit_bytes_total", "data sent", "data_range_bytes"),
    "port_rcv_data": words("receive_bytes_total", "data received", "data_range_bytes"),
    "port_xmit_packets": packets("transmit_packets_total", "packets sent"),
    "port_rcv_packets": packets("receive_packets_total", "packets received"),
}
EXTENDED = {
    "unicast_xmit_packets": saturating("unicast_transmit_packets_total", "unicast packets sent", 64),
    "unicast_rcv_packets": saturating("unicast_receive_packets_total", "unicast packets received", 64),
    "multicast_xmit_packets": saturating("multicast_transmit_packets_total", "multicast packets sent", 64),
    "multicast_rcv_packets": saturating("multicast_receive_packets_total", "multicast packets received", 64),
}
ERRORS = {
    "port_xmit_wait": saturating("transmit_wait_total", "ticks of the port with data to send that had to wait", 32),
    "port_xmit_discards": saturating("transmit_discards_total", "packets to send thrown away: link down or full", 16),
    "port_rcv_errors": saturating("receive_errors_total", "packets received with an error", 16),
    "port_rcv_remote_physical_errors": saturating(
        "receive_remote_physical_errors_total", "packets that a switch had marked as bad", 16
    ),
    "port_rcv_switch_relay_errors": saturating(
        "receive_switch_relay_errors_total", "packets that the switch could not pass on", 16
    ),
    "port_xmit_constraint_errors": saturating("transmit_constraint_errors_total", "packets not let out", 8),
    "port_rcv_constraint_errors": saturating("receive_constraint_errors_total", "packets not let in", 8),
    "symbol_error": saturating("symbol_errors_total", "minor errors on a lane", 16),
    "link_error_recovery": saturating("link_error_recoveries_total", "times that the link recovered by itself", 8),
    "link_downed": saturating("link_downed_total", "times that the link went down", 8),
    "VL15_dropped": saturating("vl15_dropped_total", "management packets dropped for lack of room", 16),
    "excessive_buffer_overrun_errors": saturating(
        "excessive_buffer_overrun_errors_total", "overruns of the input buffer in a row", 4
    ),
    "local_link_integrity_errors": saturating(
        "local_link_integrity_errors_total", "times that there were too many local errors", 4
    ),
}
# RHEL and OFED before kernel 4.5 had the 64-bit counters in a folder of their own.
SEPARATE = {
    "port_xmit_data_64": "port_xmit_data",
    "port_rcv_data_64": "port_rcv_data",
    "port_xmit_packets_64": "port_xmit_packets",
    "port_rcv_packets_64": "port_rcv_packets",
    "port_unicast_xmit_packets": "unicast_xmit_packets",
    "port_unicast_rcv_packets": "unicast_rcv_packets",
    "port_multicast_xmit_packets": "multicast_xmit_packets",
    "port_multicast_rcv_packets": "multicast_rcv_packets",
}
COUNTERS = TRAFFIC | EXTENDED | ERRORS
LIFESPAN = Column("lifespan_seconds", "for how long the driver gives the same hw_counters", unit="seconds", scale=1e-3)


def number(content: bytes) -> int | None:
    """Return the whole number of at most 64 bits in a file; None for anything else, such as `N/A (no PMA)`."""
    digits = content.strip()
    if not digits.isdigit() or len(digits) > 20:
        return None
    count = int(digits)
    return count if count < 1 << 64 else None


def state(content: bytes) -> int | None:
    """Return the number before a state, as in `4: ACTIVE`."""
    digits, mark, _ = content.partition(b":")
    return int(digits) if mark and len(digits) <= 3 and digits.isdigit() else None


def megabits(content: bytes) -> int | None:
    """Return a rate such as `100 Gb/sec (4X EDR)` or `2.5 Gb/sec (1X SDR)` in Mbit/s."""
    value, _, rest = content.partition(b" Gb/sec")
    whole, _, tenths = value.partition(b".")
    if not rest or len(whole) > 6 or len(tenths) > 1 or not whole.isdigit() or not (tenths or b"0").isdigit():
        return None
    return int(whole) * 1000 + int(tenths or b"0") * 100


def text(content: bytes) -> str | None:
    """Return one line of printable text."""
    line = content.decode("ascii", "replace").strip()
    return line if 0 < len(line) <= MAX_TEXT and line.isascii() and line.isprintable() else None


STATES: Mapping[str, tuple[Column, Parse]] = {
    "state": (Column("state_id", "1 down, 2 initialising, 3 armed, 4 active, 5 active but deferred"), state),
    "phys_state": (Column("physical_state_id", "1 sleep, 2 polling, 3 disabled, 4 training, 5 up, 6 recovery"), state),
    "rate": (
        Column("rate_bytes_per_second", "what all lanes carry", unit="bytes_per_second", scale=MEGABIT_BYTES),
        megabits,
    ),
    "link_layer": (Column("link_layer", "InfiniBand, or Ethernet for RoCE", Kind.FACT, "string"), text),
}


def columns(hardware: Mapping[str, Column]) -> tuple[Column, ...]:
    """Return the columns of a set of ports whose driver has these hw_counters, by file."""
    own = dict.fromkeys(hardware.values())  # several files may fill one column
    states = [column for column, _ in STATES.values()]
    return (REGISTRATION, *states, *COUNTERS.values(), *RANGES, LIFESPAN, *own)
