"""HPE Cray nodes: energy, power and temperature, measured by the blade controller ten times a second."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet, OnFull, Sample, Scalar
from crosswind.ingest.collectors.devices import MAX_DIGITS, number_in
from crosswind.ingest.collectors.listing import LISTED_NS, names_in
from crosswind.ingest.collectors.source import Source
from crosswind.ingest.kernel.kernel_files import KernelFiles

MEASURED = {  # by the end of the file's name: its unit, its column
    "energy": (
        b"J",
        Column("energy_joules_total", "energy used", Kind.COUNTER, unit="joules", on_full=OnFull.RESET),
    ),
    "power": (b"W", Column("power_watts", "power now", unit="watts")),
    "power_cap": (b"W", Column("power_limit_watts", "power limit; missing where there is none", unit="watts")),
    "temp": (b"C", Column("temperature_celsius", "temperature", unit="celsius")),
}
CLOCK = Column(
    "controller_seconds",
    "the controller's own clock when it measured; it counts from an instant that is not documented: for durations",
    Kind.FACT,
    unit="seconds",
    scale=1e-6,
)
OF_NODE = {
    "freshness": Column("scans_total", "times that the controller has measured", Kind.COUNTER, on_full=OnFull.RESET),
    "generation": Column(
        "power_limit_changes_total", "times that a power limit changed", Kind.COUNTER, on_full=OnFull.RESET
    ),
    "raw_scan_hz": Column("scan_rate_hertz", "how often the controller measures", Kind.FACT, unit="hertz"),
}
STARTUP = Column("controller_startup", "when the controller began to count", Kind.EPOCH)
PM_COUNTERS = MetricSet(
    "pm_counters",
    "energy and power of device node (which holds all the others), cpu, memory, accel0 ...",
    (*(column for _, column in MEASURED.values()), CLOCK, *OF_NODE.values(), STARTUP),
)
FILE = re.compile(r"(?:((?:cpu|memory|accel)\d*)_)?(energy|power|power_cap|temp)")
ATTEMPTS = 3  # the controller writes every 100 ms, and a look at all files takes less than one of them


@dataclass
class _Listing:
    files: list[tuple[str, str, str]] = field(default_factory=list)  # device, what, path
    due_ns: int = 0


@dataclass(frozen=True)
class PmCountersCollector:
    """The values that the controller wrote at one instant: a read during which it wrote again is discarded.

    Source: HPE CSM, "User Access to Compute Node Power Data", which says that `generation` counts changes of power
    limits (so it is no epoch of the energy), that a limit of 0 means none, and that node energy holds that of
    accelerators. Form `<value> <unit> <microseconds> us` as LDMS, ReFrame and HLRS recorded it.
    """

    sysfs: Path = Path("/sys")
    files: KernelFiles = field(default_factory=KernelFiles, repr=False, compare=False)
    metric_set: ClassVar[MetricSet] = PM_COUNTERS
    _listing: _Listing = field(default_factory=_Listing, init=False, repr=False, compare=False)

    @property
    def _folder(self) -> str:
        return f"{self.sysfs}/cray/pm_counters"

    def available(self) -> bool:
        """Return whether this is such a node."""
        return self.files.is_readable(f"{self._folder}/freshness")

    def read(self) -> Iterator[Sample]:
        """Yield a sample for every device. Raises: UnavailableError."""
        path = f"{self._folder}/freshness"
        try:
            rows = self._rows(path)
        except MalformedError as error:
            raise UnavailableError(f"{self._folder}: {error}") from error
        if not rows:
            raise UnavailableError(f"{self._folder}: expected lines such as `724 W 7810213855886 us`")
        startup = number_in(f"{self._folder}/startup", self.files)
        epoch: dict[str, Scalar] = {} if startup is None else {STARTUP.name: startup}
        for device, values in rows.items():
            yield Sample(device, values | epoch)

    def _rows(self, freshness: str) -> dict[str, dict[str, Scalar]]:
        for _ in range(ATTEMPTS):
            before = self.files.read(freshness)
            rows = self._measured()
            if self.files.read(freshness) == before:
                break
        else:
            raise UnavailableError(f"{freshness}: changed during each of {ATTEMPTS} looks at all counters")
        if rows:
            values = {column.name: number_in(f"{self._folder}/{name}", self.files) for name, column in OF_NODE.items()}
            rows.setdefault("node", {}).update({name: value for name, value in values.items() if value is not None})
        return rows

    def _measured(self) -> dict[str, dict[str, Scalar]]:
        rows: dict[str, dict[str, Scalar]] = {}
        for device, what, path in self._listed():
            unit, column = MEASURED[what]
            try:
                fields = self.files.read(path).split(None, 4)
            except (UnavailableError, MalformedError):
                self._listing.due_ns = 0
                continue
            value = _number(fields, unit)
            if value is None or (what == "power_cap" and value == 0):
                continue
            row = rows.setdefault(device, {})
            row[column.name] = value
            if len(fields) == 4 and fields[3] == b"us" and fields[2].isdigit() and len(fields[2]) <= MAX_DIGITS:
                row[CLOCK.name] = int(fields[2])
        return rows

    def _listed(self) -> list[tuple[str, str, str]]:
        now_ns = time.monotonic_ns()
        if now_ns >= self._listing.due_ns:
            matches = filter(None, map(FILE.fullmatch, names_in(self._folder)))
            self._listing.files = [(name[1] or "node", name[2], f"{self._folder}/{name[0]}") for name in matches]
            self._listing.due_ns = now_ns + LISTED_NS
        return self._listing.files


def _number(fields: list[bytes], unit: bytes) -> int | None:
    if len(fields) in (2, 4) and fields[1] == unit and fields[0].isdigit() and len(fields[0]) <= MAX_DIGITS:
        return int(fields[0])
    return None


SOURCE = Source(
    "pm_counters",
    lambda host, _: PmCountersCollector(host.sysfs, host.files),
    advice="an HPE Cray XC, EX or compatible node, with /sys/cray/pm_counters",
)
