"""Disks: reads, writes, discards and flushes of each block device and partition, and its busy time."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, Sample
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.kernel_files import KernelFiles
from crosswind.ingest.kernel.procfs import count, counts

SECTOR_BYTES = 512  # of this file, whatever the disk's own sectors are
RAM_AND_LOOP = ([b"1"], [b"7"])  # majors of devices made of memory and of files


def _requests(name: str, description: str) -> Column:
    return Column(name, description, Kind.COUNTER, "uint64")


def _sectors(name: str, description: str) -> Column:
    return Column(name, description, Kind.COUNTER, "uint64", unit="bytes", scale=SECTOR_BYTES)


def _milliseconds(name: str, description: str) -> Column:
    return Column(name, description, Kind.COUNTER, unit="seconds", scale=1e-3, width_bits=32)  # on every kernel


STATISTICS = (  # in the order of the line, behind the name
    _requests("reads_total", "reads completed"),
    _requests("merged_reads_total", "reads that became part of another"),
    _sectors("read_bytes_total", "read"),
    _milliseconds("read_seconds_total", "summed over all reads, those at once counted each"),
    _requests("writes_total", "writes completed"),
    _requests("merged_writes_total", "writes that became part of another"),
    _sectors("written_bytes_total", "written"),
    _milliseconds("write_seconds_total", "summed over all writes, those at once counted each"),
    Column("requests_in_flight", "handed to the device and not yet answered"),
    replace(_milliseconds("busy_seconds_total", "at least one request was in flight"), max_rate=1.0),
    _milliseconds("request_seconds_total", "summed over all requests, those at once counted each"),
    _requests("discards_total", "discards completed"),
    _requests("merged_discards_total", "discards that became part of another"),
    _sectors("discarded_bytes_total", "discarded"),
    _milliseconds("discard_seconds_total", "summed over all discards"),
    _requests("flushes_total", "flushes completed; those of partitions count for the whole disk alone"),
    _milliseconds("flush_seconds_total", "summed over all flushes"),
)
NAMES = tuple(column.name for column in STATISTICS)
DISK = Column("disk", "the whole disk; a partition's device has another name", Kind.FACT, "string")
SEQUENCE = Column("disk_sequence", "a disk put in under the name of another has another", Kind.EPOCH)
DISKS = MetricSet("disk", "requests of each disk and partition, without ram and loop", (*STATISTICS, DISK, SEQUENCE))


@dataclass(frozen=True)
class DiskCollector:
    """Requests, sectors of 512 bytes and milliseconds of each block device.

    Times are 32 bits wide on 64-bit kernels too, and wrap after 50 days of one request in flight. Discards came with
    Linux 4.18, flushes with 5.5, the disk's sequence number with 5.15.
    Source: https://docs.kernel.org/admin-guide/iostats.html; diskstats_show in Linux block/genhd.c;
    https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-block
    """

    proc: Path = Path("/proc")
    sysfs: Path = Path("/sys")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = DISKS
    _disks: dict[str, str] = field(default_factory=dict, init=False, repr=False, compare=False)

    def available(self) -> bool:
        """Return whether the kernel shows block devices."""
        return self.files.is_readable(f"{self.proc}/diskstats")

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every disk or partition. Raises: UnavailableError if there is none, MalformedError."""
        path = f"{self.proc}/diskstats"
        samples = dict(_statistics(line, path) for line in self.files.read(path).splitlines() if not _is_left_out(line))
        if not samples:
            raise UnavailableError(f"{path}: expected a disk, found none")
        if samples.keys() != self._disks.keys():
            self._distinguish(list(samples))
        sequences = {disk: self._sequence(disk) for disk in set(self._disks.values()) if disk}
        for name, values in samples.items():
            disk = self._disks[name]
            yield Sample(name, values | ({DISK.name: disk} | sequences[disk] if disk else {}))

    def _distinguish(self, names: list[str]) -> None:
        try:
            disks = {folder.name.replace("!", "/") for folder in (self.sysfs / "block").iterdir()}
        except OSError:  # a sandbox hides it: partitions cannot be recognised
            disks = set()
        self._disks.clear()
        self._disks.update({name: _disk_of(name, disks) for name in names})

    def _sequence(self, disk: str) -> dict[str, int]:
        path = f"{self.sysfs}/block/{disk.replace('/', '!')}/diskseq"
        try:
            return {SEQUENCE.name: count(self.files.read(path).strip(), path)}
        except (UnavailableError, MalformedError):  # an older kernel
            return {}


def _is_left_out(line: bytes) -> bool:
    return line.split(None, 1)[:1] in RAM_AND_LOOP


def _disk_of(name: str, disks: set[str]) -> str:
    """Return the whole disk: itself, or the longest name before a number (sda1, nvme0n1p1); empty if there is none."""
    if name in disks:
        return name
    stem = name.rstrip("0123456789")
    return next((disk for disk in (stem.removesuffix("p"), stem) if disk in disks), "")


def _statistics(line: bytes, path: str) -> tuple[str, dict[str, int | str]]:
    fields = line.split()
    numbers = fields[3:]
    if len(numbers) < 11:
        raise MalformedError(f"{path}: expected two numbers, a name and 11 numbers or more a line, found {line!r:.80}")
    name = fields[2].decode("ascii", "backslashreplace")[:200]
    return name, dict(zip(NAMES, counts(numbers, path), strict=False))


SOURCE = Source(
    "disk",
    lambda host, _: DiskCollector(host.proc, host.sysfs, host.files),
    advice="mount /proc and /sys; a diskless node has none",
)
