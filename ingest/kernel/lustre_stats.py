"""Lustre's files of counters: their places and their lines."""

import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Kind, OnFull
from crosswind.ingest.kernel.kernel_files import KernelFiles
from crosswind.ingest.kernel.printable import printable

REFRESH_SECONDS: Final = 10.0
PLACES = ("kernel/debug/lustre", "fs/lustre")  # below /sys; /proc/fs/lustre, of before 2.12, is tried first
STAMP = re.compile(rb"(\d{1,10})\.(\d{9})")  # older versions write microseconds without leading zeros: no stamp
MICROSECONDS = (b"[usec]", b"[usecs]")
STAMPS = {
    b"snapshot_time": Column("measured_ns", "Lustre's own time of these counters, UTC", Kind.FACT),
    b"start_time": Column("cleared_ns", "start or last clearing of these counters, UTC", Kind.EPOCH),
}
INSTANCE = Column("instance", "number of the mount: changes with every mount", Kind.EPOCH, "string")


@dataclass(frozen=True, slots=True)
class Lines:
    """The columns for each line: the number of samples, their sum in bytes, their sum of microseconds."""

    calls: Mapping[bytes, str]
    sums: Mapping[bytes, str]
    times: Mapping[bytes, str]


@dataclass(frozen=True, slots=True)
class StatsFile:
    """The path of one file of counters, and its mount."""

    path: str
    instance: str


@dataclass(frozen=True)
class LustreStats:
    """The `stats` files of some kinds, such as llite, in every place where a version of Lustre has them.

    Source: lustre/obdclass/lprocfs_status.c; https://wiki.lustre.org/Lustre_Monitoring_and_Statistics_Guide
    """

    kinds: tuple[str, ...]
    lines: Lines
    proc: Path = Path("/proc")
    sysfs: Path = Path("/sys")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    _known: dict[str, StatsFile] = field(default_factory=dict, init=False, repr=False, compare=False)
    _renewed: list[float] = field(default_factory=list, init=False, repr=False, compare=False)

    def are_readable(self) -> bool:
        """Return whether there is any that this user may read."""
        return any(self.files.is_readable(file.path) for file in self._found().values())

    def read(self) -> Iterator[tuple[str, dict[str, int | str]]]:
        """Yield the device and the values of each file that can be read. Raises: UnavailableError, MalformedError."""
        self._renew_now_and_then()
        failure: UnavailableError | MalformedError | None = None
        readings = []
        for device, file in self._known.items():
            try:
                readings.append((device, self._values(file)))
            except (UnavailableError, MalformedError) as error:
                failure = error
                self._renewed.clear()  # unmounted, and perhaps mounted again
        if not readings:
            raise failure or UnavailableError(f"{', '.join(self._roots())}: no {' or '.join(self.kinds)} with stats")
        yield from readings

    def _values(self, file: StatsFile) -> dict[str, int | str]:
        content = self.files.read(file.path)
        if not content.startswith(b"snapshot_time"):
            raise MalformedError(f"{file.path}: expected a snapshot_time first, found {content!r:.80}")
        values: dict[str, int | str] = {INSTANCE.name: file.instance}
        for line in content.splitlines():
            self._take(line.split(), values)
        return values

    def _take(self, fields: list[bytes], values: dict[str, int | str]) -> None:
        """Take a line `name count samples [unit] least most sum squares`, of which the last four may be missing."""
        name = fields[0] if len(fields) > 1 else b""
        if name in STAMPS:
            if (stamp := STAMP.fullmatch(fields[1])) is not None:
                values[STAMPS[name].name] = int(stamp[1] + stamp[2])
        elif len(fields) > 3 and fields[2] == b"samples":
            if name in self.lines.calls and _is_whole(fields[1]):
                values[self.lines.calls[name]] = int(fields[1])
            if len(fields) > 6 and _is_whole(fields[6]):
                columns = self.lines.times if fields[3] in MICROSECONDS else self.lines.sums
                if name in columns:
                    values[columns[name]] = int(fields[6])

    def _renew_now_and_then(self) -> None:
        now = time.monotonic()
        if self._renewed and now - self._renewed[0] < REFRESH_SECONDS:
            return
        files = self._found()
        for gone in self._known.values():
            if gone not in files.values():
                self.files.forget(gone.path.rpartition("/")[0])
        self._known.clear()
        self._known.update(files)
        self._renewed[:] = [now]

    def _roots(self) -> list[str]:
        return [f"{self.proc}/fs/lustre", *(f"{self.sysfs}/{place}" for place in PLACES)]

    def _found(self) -> dict[str, StatsFile]:
        """Return files by device: the name without the mount's address, unless a file system is mounted twice."""
        files: dict[str, StatsFile] = {}
        seen: set[str] = set()
        for root in self._roots():
            for kind in self.kinds:
                for entry in _with_stats(f"{root}/{kind}"):
                    if entry not in seen:  # the same in another place
                        seen.add(entry)
                        name, instance = _split(kind, entry)
                        device = printable(os.fsencode(entry if name in files else name))
                        files[device] = StatsFile(f"{root}/{kind}/{entry}/stats", printable(os.fsencode(instance)))
        return files


def _with_stats(folder: str) -> list[str]:
    try:
        entries = sorted(os.listdir(folder))  # noqa: PTH208 - texts are needed
    except OSError:  # no Lustre, or hidden from this user
        return []
    return [entry for entry in entries if os.path.exists(f"{folder}/{entry}/stats")]  # noqa: PTH110 - see above


def _split(kind: str, entry: str) -> tuple[str, str]:
    """Split off the mount: `scratch-ffff94...` of llite is scratch, `scratch-OST0000-osc-ffff94...` scratch-OST0000."""
    name, _, instance = entry.rpartition("-")
    return (name.removesuffix(f"-{kind}"), instance) if name else (entry, "")


def _is_whole(field: bytes) -> bool:
    return field.isdigit() and len(field) < 19


def calls(prefix: str, description: str) -> Column:
    """Return a column that counts operations since the mount, or since a clearing by hand."""
    return Column(f"{prefix}_calls_total", description, Kind.COUNTER, on_full=OnFull.RESET)


def seconds(prefix: str, description: str) -> Column:
    """Return the column of the operations' summed durations."""
    text = f"{description}: the time they took, summed"
    return Column(f"{prefix}_seconds_total", text, Kind.COUNTER, unit="seconds", scale=1e-6, on_full=OnFull.RESET)


def moved(prefix: str, description: str) -> Column:
    """Return a column of the bytes moved."""
    return Column(f"{prefix}_bytes_total", description, Kind.COUNTER, unit="bytes", on_full=OnFull.RESET)
