"""Ports of RDMA devices under /sys/class/infiniband: finding and reading them."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Sample, Scalar
from crosswind.ingest.collectors.listing import names_if_any, names_in
from crosswind.ingest.collectors.rdma_counters import (
    COUNTERS,
    EXTENDED,
    LIFESPAN,
    NARROW_RANGE,
    RANGES,
    REGISTRATION,
    SEPARATE,
    STATES,
    TRAFFIC,
    Parse,
    number,
)
from crosswind.ingest.kernel.kernel_files import KernelFiles


@dataclass(frozen=True, slots=True)
class Port:
    """A port, or a device with counters of its own, and the file of each of its columns."""

    name: str
    folder: str
    states: tuple[tuple[str, str, Parse], ...]  # path, column, how to read it
    numbers: tuple[tuple[str, str], ...]  # path, column
    is_narrow: bool = False  # no sign of 64-bit counters


def find_ports(folder: str, hardware: Mapping[str, Column], *, is_wanted: Callable[[str, str], bool]) -> Iterator[Port]:
    """Yield every port of the wanted devices in a folder. Raises: UnavailableError."""
    for device in names_in(folder):
        if is_wanted(folder, device):
            path = f"{folder}/{device}"
            own = tuple(_hardware(path, hardware))
            if own:
                yield Port(device, path, (), own)
            for port in names_if_any(f"{path}/ports"):
                yield _port(f"{device}/{port}", f"{path}/ports/{port}", hardware)


def is_omnipath(folder: str, device: str) -> bool:
    """Return whether the driver is hfi1, whatever name udev has given to its device."""
    if device.startswith("hfi1_"):
        return True
    try:
        return os.readlink(f"{folder}/{device}/device/driver").rpartition("/")[2] == "hfi1"  # noqa: PTH115 - a name
    except OSError:
        return False


def read_port(port: Port, files: KernelFiles) -> Sample | None:
    """Return the port's values; None when it is gone, or has none.

    The registration is the inode of its folder. The kernel gives each entry of sysfs a number of its own, and a driver
    creates new entries whenever it registers its device.
    """
    try:
        registration = os.stat(port.folder).st_ino  # noqa: PTH116 - at every sweep
    except OSError:
        return None
    values: dict[str, Scalar] = {}
    _read(port.numbers, files, values)
    _add_ranges(port, values)
    for path, column, parse in port.states:
        _read(((path, column),), files, values, parse)
    if not values:
        return None
    values[REGISTRATION.name] = registration
    return Sample(port.name, values)


def reader(files: KernelFiles) -> Callable[[Port], Sample | None]:
    """Return a function that reads ports through these files."""
    return partial(read_port, files=files)


def _read(
    named: tuple[tuple[str, str], ...], files: KernelFiles, values: dict[str, Scalar], parse: Parse = number
) -> None:
    for path, column in named:
        try:
            parsed = parse(files.read(path))
        except (UnavailableError, MalformedError):  # this driver has no such counter
            continue
        if parsed is not None:
            values[column] = parsed


def _add_ranges(port: Port, values: dict[str, Scalar]) -> None:
    if not port.is_narrow:
        return
    traffic = [value for column in TRAFFIC.values() if isinstance(value := values.get(column.name), int)]
    if traffic and max(traffic) < NARROW_RANGE:
        values |= dict.fromkeys((column.name for column in RANGES), NARROW_RANGE)


def _port(name: str, folder: str, hardware: Mapping[str, Column]) -> Port:
    counters = {file: f"{folder}/counters/{file}" for file in names_if_any(f"{folder}/counters")}
    separate = {
        SEPARATE.get(file, ""): f"{folder}/counters_ext/{file}" for file in names_if_any(f"{folder}/counters_ext")
    }
    paths = counters | separate
    numbers = [(path, COUNTERS[file].name) for file, path in paths.items() if file in COUNTERS]
    states = [(f"{folder}/{file}", column.name, parse) for file, (column, parse) in STATES.items()]
    is_narrow = not separate and not counters.keys() & EXTENDED.keys()
    return Port(name, folder, tuple(states), (*numbers, *_hardware(folder, hardware)), is_narrow)


def _hardware(folder: str, hardware: Mapping[str, Column]) -> Iterator[tuple[str, str]]:
    names = names_if_any(f"{folder}/hw_counters")
    files = [file for file in names if file in hardware]
    if files and "lifespan" in names:
        yield f"{folder}/hw_counters/lifespan", LIFESPAN.name
    yield from ((f"{folder}/hw_counters/{file}", hardware[file].name) for file in files)
