"""Groups of performance counters of a thread or a core, by perf_event_open(2) without any package.

Source: perf_event_open(2); Linux include/uapi/linux/perf_event.h
"""

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from crosswind.ingest.kernel.fd_limits import OUT_OF_FILES

# The syscall's number, and the ioctls to enable a group and to learn a counter's id, by machine.
CALLS: Final = {
    "x86_64": (298, 0x2400, 0x80082407),
    "aarch64": (241, 0x2400, 0x80082407),
    "riscv64": (241, 0x2400, 0x80082407),
    "ppc64le": (319, 0x20002400, 0x40082407),
}
HARDWARE: Final = 0  # PERF_TYPE_HARDWARE
SOFTWARE: Final = 1  # PERF_TYPE_SOFTWARE
READ_FORMAT: Final = 1 | 2 | 4 | 8  # time enabled, time running, id, group
DISABLED: Final = 1 << 0
INHERIT: Final = 1 << 1
EXCLUDE_KERNEL: Final = 1 << 5
CLOSE_ON_EXEC: Final = 1 << 3
WHOLE_GROUP: Final = 1
REFUSED: Final = (errno.EACCES, errno.EPERM)
GONE: Final = (errno.ESRCH, errno.ENODEV)
# type, size, config, sample period, sample type, read format, flags, wake-up, breakpoint type, config1
ATTRIBUTES: Final = struct.Struct("=IIQQQQQIIQ")


@dataclass(frozen=True)
class Event:
    """An event to count, and its name."""

    name: str
    kind: int
    config: int
    is_of_kernel: bool = False  # happens in the kernel alone: without permission to count there it would stay 0


@dataclass(frozen=True)
class Target:
    """A thread on any core (`cpu` -1), or a core with all that runs there (`pid` -1)."""

    pid: int
    cpu: int = -1

    @property
    def flags(self) -> int:
        """Return the flags: threads and processes that a thread starts are counted with it."""
        return INHERIT if self.cpu < 0 else 0


class PerfKernel(Protocol):
    """The system calls that counting needs; each raises OSError."""

    def open(self, attributes: bytes, target: Target, leader: int) -> int:
        """Return a descriptor of a new counter in the group of `leader`, or with -1 of a group of its own."""
        ...

    def identity(self, fd: int) -> int:
        """Return the counter's id in the readings of its group."""
        ...

    def enable(self, leader: int) -> None:
        """Start the whole group."""
        ...

    def read(self, leader: int, size: int) -> bytes:
        """Read the group's numbers."""
        ...

    def close(self, fd: int) -> None:
        """Close the counter."""
        ...


class LinuxPerf:
    """This machine's kernel. On an unknown architecture no counter can be opened (ENOSYS)."""

    def __init__(self) -> None:
        self._number, self._enable, self._identity = CALLS.get(os.uname().machine, (-1, 0, 0))
        self._call = ctypes.CDLL(None, use_errno=True).syscall
        self._call.restype = ctypes.c_long

    def open(self, attributes: bytes, target: Target, leader: int) -> int:
        """As the protocol says."""
        numbers = [ctypes.c_long(number) for number in (target.pid, target.cpu, leader, CLOSE_ON_EXEC)]
        fd: int = self._call(ctypes.c_long(self._number), ctypes.create_string_buffer(attributes), *numbers)
        if fd < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return fd

    def identity(self, fd: int) -> int:
        """As the protocol says."""
        return int.from_bytes(fcntl.ioctl(fd, self._identity, bytes(8)), "little")

    def enable(self, leader: int) -> None:
        """As the protocol says."""
        fcntl.ioctl(leader, self._enable, WHOLE_GROUP)

    def read(self, leader: int, size: int) -> bytes:
        """As the protocol says."""
        return os.read(leader, size)

    def close(self, fd: int) -> None:
        """As the protocol says."""
        os.close(fd)


@dataclass(frozen=True)
class Counts:
    """The numbers of a group, and the nanoseconds for which it was enabled and for which it ran."""

    values: Mapping[str, int]
    enabled: int
    running: int


@dataclass(frozen=True)
class Group:
    """Counters of one target that count during the same time."""

    kernel: PerfKernel
    fds: Sequence[int]
    names: Mapping[int, str]  # by id
    refusals: Mapping[str, int]  # errno of events that could not be opened, by name

    def read(self) -> Counts:
        """Return the counts since the group was opened. Raises: OSError."""
        return decoded(self.kernel.read(self.fds[0], 24 + 16 * len(self.fds)), self.names)

    def close(self) -> None:
        """Close its counters."""
        for fd in self.fds:
            self.kernel.close(fd)


def encoded(event: Event, flags: int) -> bytes:
    """Return `struct perf_event_attr` in its first published size, which every kernel takes: counting, not sampling."""
    return ATTRIBUTES.pack(event.kind, ATTRIBUTES.size, event.config, 0, 0, READ_FORMAT, flags, 0, 0, 0)


def decoded(content: bytes, names: Mapping[int, str]) -> Counts:
    """Return the counts in a group's bytes: number, two times, then value and id of each. Raises: OSError if short."""
    if len(content) != 24 + 16 * len(names):
        raise OSError(errno.EIO, f"expected {24 + 16 * len(names)} bytes of the group, found {len(content)}")
    _, enabled, running, *pairs = struct.unpack(f"={len(content) // 8}Q", content)
    return Counts(
        {names[identity]: value for value, identity in zip(pairs[::2], pairs[1::2], strict=True)}, enabled, running
    )


def opened(kernel: PerfKernel, events: Iterable[Event], target: Target, *, with_kernel: bool) -> Group:
    """Open a group that counts those of the events that this machine has.

    Raises: OSError when the target is gone, descriptors run out, or counting there is refused.
    """
    fds: list[int] = []
    names: dict[int, str] = {}
    refusals: dict[str, int] = {}
    flags = target.flags | (0 if with_kernel else EXCLUDE_KERNEL)
    try:
        for event in events:
            if event.is_of_kernel and not with_kernel:
                refusals[event.name] = errno.EACCES
                continue
            try:
                fd = kernel.open(encoded(event, flags if fds else flags | DISABLED), target, fds[0] if fds else -1)
            except OSError as error:
                if error.errno in (*OUT_OF_FILES, *REFUSED, *GONE):
                    raise
                refusals[event.name] = error.errno or 0
                continue
            fds.append(fd)
            names[kernel.identity(fd)] = event.name
        if fds:
            kernel.enable(fds[0])
    except OSError:
        for fd in fds:
            kernel.close(fd)
        raise
    return Group(kernel, tuple(fds), names, refusals)
