"""Slingshot adapters (CXI, Cassini): traffic, pauses, link quality, retries, matching and translation."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, OnFull, Sample, Scalar
from crosswind.ingest.collectors.listing import Listing, names_if_any, names_in
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.kernel_files import KernelFiles
from crosswind.ingest.kernel.procfs import read_file

WIDTH_BITS = 56  # of every counter below, in Cassini 1 and 2
RANGE = 2**WIDTH_BITS
CLASSES = range(8)  # traffic classes
POOLS = range(4)  # of counters, one a list processing engine


def _count(name: str, description: str, unit: str = "") -> Column:
    return Column(f"{name}_total", description, Kind.COUNTER, dtype="uint64", unit=unit, width_bits=WIDTH_BITS)


TRAFFIC = {
    "hni_sts_tx_ok_octets": _count("transmit_bytes", "sent in good packets", "bytes"),
    "hni_sts_rx_ok_octets": _count("receive_bytes", "received in good packets", "bytes"),
    "hni_sts_tx_bad_octets": _count("transmit_bad_bytes", "sent in packets marked as bad", "bytes"),
    "hni_sts_rx_bad_octets": _count("receive_bad_bytes", "received in bad packets", "bytes"),
    "hni_tx_ok_opt": _count("transmit_fabric_packets", "packets sent in the fabric's own format"),
    "hni_rx_ok_opt": _count("receive_fabric_packets", "packets received in the fabric's own format"),
    "hni_tx_ok_ieee": _count("transmit_ethernet_packets", "Ethernet packets sent"),
    "hni_rx_ok_ieee": _count("receive_ethernet_packets", "Ethernet packets received"),
}
PAUSES = {
    f"hni_{way}_paused_{number}": _count(
        f"hni_{way}_paused_tc{number}_cycles", f"{what} was paused in traffic class {number}", "cycles"
    )
    for way, what in (("rx", "receiving"), ("tx", "sending"))
    for number in CLASSES
}
LINK = {
    "hni_pcs_good_cw": _count("hni_pcs_good_codewords", "code words that came in whole"),
    "hni_pcs_corrected_cw": _count("hni_pcs_corrected_codewords", "code words that could be mended"),
    "hni_pcs_uncorrected_cw": _count("hni_pcs_uncorrected_codewords", "code words that were lost"),
    "hni_llr_tx_replay_event": _count("hni_llr_tx_replay", "times that the link had to send again"),
    "hni_llr_rx_replay_event": _count("hni_llr_rx_replay", "times that the switch had to send again"),
}
RETRIES = {
    f"pct_{name}": _count(f"pct_{name}", description)
    for name, description in {
        "no_tct_nacks": "refusals for lack of a connection entry",
        "no_mst_nacks": "refusals for lack of a message entry",
        "no_trs_nacks": "refusals for lack of a result entry",
        "mst_hit_on_som": "new messages whose entry was there already",
        "sct_timeouts": "connections without an answer in time, mostly because packets were lost",
        "spt_timeouts": "packets without an answer in time, mostly because they were lost",
        "tct_timeouts": "connections of others that timed out here",
        "trs_rsp_nack_drops": "refusals that were dropped",
        "resource_busy": "requests that found a resource busy",
        "retry_srb_requests": "requests sent again",
    }.items()
}
MATCHING = {
    f"lpe_net_match_{where}_{number}": _count(f"lpe_net_match_{where}_{number}", f"{what}, pool {number}")
    for where, what in (
        ("priority", "messages matched in the list of posted receives"),
        ("overflow", "messages matched in the list for those that came too early"),
        ("request", "messages matched in the list of requests"),
    )
    for number in POOLS
}
TRANSLATION = {
    "atu_cache_evictions": _count("atu_cache_evictions", "translations pushed out of the cache"),
    "atu_cache_miss_oxe": _count("atu_cache_misses_oxe", "translations for sending that were not cached"),
    "atu_cache_miss_ixe": _count("atu_cache_misses_ixe", "translations for receiving that were not cached"),
    "atu_cache_miss_ee": _count("atu_cache_misses_ee", "translations for events that were not cached"),
}
PCIE = {
    "parbs_tarb_pi_posted_pkts": _count("parbs_posted_pkts", "writes to the node"),
    "parbs_tarb_pi_posted_blocked_cnt": _count("parbs_posted_blocked_cycles", "a write had to wait", "cycles"),
    "parbs_tarb_pi_non_posted_pkts": _count("parbs_non_posted_pkts", "reads from the node"),
    "parbs_tarb_pi_non_posted_blocked_cnt": _count("parbs_non_posted_blocked_cycles", "a read had to wait", "cycles"),
}
TELEMETRY = TRAFFIC | PAUSES | LINK | RETRIES | MATCHING | TRANSLATION | PCIE
# The retry handler is a daemon: it counts in an int, from 0 at its start or after a request to reset.
HANDLER = {
    file: Column(f"rh_{file}_total", f"retry handler: {what}", Kind.COUNTER, width_bits=31, on_full=OnFull.RESET)
    for file, what in {
        "spt_timeouts": "packets without an answer in time, mostly because they were lost",
        "sct_timeouts": "connections that were not answered in time",
        "tct_timeouts": "connections of others that timed out here",
        "nacks": "refusals",
        "nack_no_target_conn": "refusals for lack of a connection entry at the target",
        "nack_no_target_mst": "refusals for lack of a message entry at the target",
        "nack_no_target_trs": "refusals for lack of a result entry at the target",
        "nack_no_matching_conn": "refusals because the target knew no such connection",
        "nack_resource_busy": "refusals because a resource was busy",
        "nack_sequence_error": "refusals because a packet was out of order",
        "connections_cancelled": "connections given up",
        "pkts_cancelled_o": "ordered packets given up",
        "pkts_cancelled_u": "unordered packets given up",
    }.items()
}
PARKED = {
    "parked_nids": Column("rh_parked_nids", "retry handler: peers that nothing is sent to for now"),
    "parked_switches": Column("rh_parked_switches", "retry handler: switches that nothing is sent to for now"),
}
REGISTRATION = Column(
    "registration", "the driver's telemetry folder; another after its reload", Kind.EPOCH, dtype="uint64"
)
LINK_UP = Column("link_up", "1 when the link is up, else 0")
RESTARTS = Column(
    "link_restarts_total",
    "times that the link started again; at most the last 10 of those before the agent started",
    Kind.COUNTER,
    on_full=OnFull.SATURATE,
)
MEASURED = Column("measured_ns", "the kernel's own time of the row's last counter, UTC", Kind.FACT)
HANDLED = HANDLER | PARKED
CXI = MetricSet(
    "cxi",
    "Slingshot adapters; the device is cxi0 ...",
    (REGISTRATION, MEASURED, *TELEMETRY.values(), LINK_UP, RESTARTS, *HANDLED.values()),
)


@dataclass
class _Ring:
    """The times of the driver's last ten link restarts, in seconds, in places used in turn."""

    paths: tuple[str, ...] = ()
    earlier_stamps: dict[str, int] = field(default_factory=dict)
    total: int = 0

    def count(self, files: KernelFiles) -> int | None:
        """Return how many restarts were ever seen; None if the driver has no such ring."""
        stamps = {path: stamp for path in self.paths if (stamp := _whole(path, files)) is not None}
        if not stamps:
            return None
        self.total += sum(stamp not in (0, self.earlier_stamps.get(path)) for path, stamp in stamps.items())
        self.earlier_stamps |= stamps
        return self.total


@dataclass(frozen=True, slots=True)
class _Adapter:
    name: str
    telemetry: str
    counters: tuple[tuple[str, str], ...]  # path, column
    link: str
    restarts: _Ring
    handler: tuple[tuple[str, str], ...]  # path, column


@dataclass(frozen=True)
class CxiCollector:
    """About sixty of an adapter's 1 900 counters, and those of its retry handler.

    The kernel reads the adapter when a file is read, and gives the time: no value is older than its row, and
    `measured_ns` is the time of the last of them. Widths are those of the driver's own table.

    Source: HewlettPackard/shs-cxi-driver cass_telem.c, cass_sysfs.c; shs-cassini-headers
    cassini-telemetry-sysfs-defs.h (names, types, widths); shs-libcxi retry_handler/stats.c; ldms cxi_sampler(7);
    https://docs.open-mpi.org/en/main/features/hwpc-cxi.html (meanings).
    """

    sysfs: Path = Path("/sys")
    run: Path = Path("/run")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = CXI
    _adapters: Listing[_Adapter] = field(default_factory=Listing, init=False, repr=False, compare=False)
    _rings: dict[str, _Ring] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def _folder(self) -> str:
        folders = (f"{self.sysfs}/class/cxi", f"{self.sysfs}/kernel/debug/cxi")  # some installations have the second
        return next((folder for folder in folders if names_if_any(folder)), folders[0])

    def available(self) -> bool:
        """Return whether there is an adapter."""
        return bool(names_if_any(self._folder))

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every adapter that shows something. Raises: UnavailableError."""
        samples = self._adapters.samples(self._find, partial(_read, files=self.files))
        if not samples:
            raise UnavailableError(f"{self._folder}: no adapter shows anything")
        yield from samples

    def _find(self) -> Iterator[_Adapter]:
        for name in names_in(self._folder):
            device = f"{self._folder}/{name}/device"
            # Trying sixty files costs a tenth of listing 1 900.
            shown = [file for file in TELEMETRY if os.access(f"{device}/telemetry/{file}", os.R_OK)]
            handled = HANDLED.keys() & set(names_if_any(f"{self.run}/cxi/{name}"))
            restarts = [time for time in names_if_any(f"{device}/link_restarts") if time.startswith("time_")]
            ring = self._rings.setdefault(name, _Ring())
            ring.paths = tuple(f"{device}/link_restarts/{time}" for time in restarts)
            yield _Adapter(
                name,
                f"{device}/telemetry",
                tuple((f"{device}/telemetry/{file}", TELEMETRY[file].name) for file in shown),
                f"{device}/properties/link",
                ring,
                tuple((f"{self.run}/cxi/{name}/{file}", HANDLED[file].name) for file in sorted(handled)),
            )


def stamped(content: bytes) -> tuple[int, int] | None:
    """Return value and nanoseconds since 1970 of `value@seconds.nanoseconds`; None for anything else."""
    digits, _, stamp = content.strip().partition(b"@")
    seconds, _, nanoseconds = stamp.partition(b".")
    if not digits.isdigit() or len(digits) > 17 or not seconds.isdigit() or len(seconds) > 10:
        return None
    if len(nanoseconds) != 9 or not nanoseconds.isdigit() or (value := int(digits)) >= RANGE:
        return None
    return value, int(seconds + nanoseconds)


def _read(adapter: _Adapter, files: KernelFiles) -> Sample | None:
    try:
        registration = os.stat(adapter.telemetry).st_ino  # noqa: PTH116 - at every sweep
    except OSError:
        return None
    values: dict[str, Scalar] = {}
    measured_ns = 0
    for path, column in adapter.counters:
        try:
            reading = stamped(files.read(path))
        except (UnavailableError, MalformedError):  # this generation of the adapter has no such counter
            continue
        if reading is not None:
            values[column], measured_ns = reading
    if not values:
        return None
    values |= {REGISTRATION.name: registration, MEASURED.name: measured_ns}
    _add_rest(adapter, files, values)
    return Sample(adapter.name, values)


def _add_rest(adapter: _Adapter, files: KernelFiles, values: dict[str, Scalar]) -> None:
    rest = {LINK_UP.name: _whole(adapter.link, files), RESTARTS.name: adapter.restarts.count(files)}
    rest |= {column: _handled(path) for path, column in adapter.handler}
    values |= {column: value for column, value in rest.items() if value is not None}


def _whole(path: str, files: KernelFiles) -> int | None:
    try:
        return _digits(files.read(path))
    except (UnavailableError, MalformedError):
        return None


def _handled(path: str) -> int | None:
    """Return a number of the retry handler, which serves its files itself: only opening one gets the present value."""
    try:
        return _digits(read_file(path).partition(b"\n")[0])
    except (UnavailableError, MalformedError):
        return None


def _digits(content: bytes) -> int | None:
    digits = content.strip()
    return int(digits) if digits.isdigit() and len(digits) <= 18 else None


SOURCE = Source(
    "cxi",
    lambda host, _: CxiCollector(host.sysfs, host.root / "run", host.files),
    advice="the kernel driver cxi_ss1 with telemetry; in a virtual function, the leave of the physical one",
    timeout_seconds=5.0,  # a virtual function queries the physical one; the retry handler's files are a daemon's
)
