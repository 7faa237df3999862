"""A network driver's own statistics, read by the ethtool ioctl."""

import ctypes
import fcntl
import mmap
import socket
import struct
import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.kernel.printable import printable

SIOCGIFINDEX: Final = 0x8933
SIOCETHTOOL: Final = 0x8946
GDRVINFO: Final = 0x03
GSTRINGS: Final = 0x1B
GSTATS: Final = 0x1D
GSSET_INFO: Final = 0x37
STATISTICS: Final = 1  # ETH_SS_STATS, the string set
NAME_BYTES: Final = 32  # ETH_GSTRING_LEN
REQUEST = struct.Struct("@16sP16x")  # struct ifreq with a pointer, or an index, behind the name
INDEX = struct.Struct("@16si20x")
DRIVER = struct.Struct("@4x32s32s")
COUNT = struct.Struct("@IIQI")
STRINGS = struct.Struct("@III")
NUMBERS = struct.Struct("@II")
MOST: Final = 65_536  # statistics; the largest adapters have some ten thousand
# The kernel writes as many statistics as the driver has by now, whatever the size of the buffer, so it is far larger
# than needed. Untouched pages cost nothing.
BUFFER_BYTES: Final = 4 * 1024 * 1024

Ioctl = Callable[[socket.socket, int, bytes], bytes]


@dataclass(frozen=True, slots=True)
class Driver:
    """The driver that serves an interface."""

    name: str
    version: str


class Ethtool:
    """Queries interfaces of the network namespace in which it was first used. Not for several threads at once.

    Source: linux/ethtool.h; net/ethtool/ioctl.c
    """

    def __init__(self, ioctl: Ioctl = fcntl.ioctl) -> None:
        self._ioctl = ioctl
        self._memory = mmap.mmap(-1, BUFFER_BYTES)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._words = memoryview(self._memory).cast("Q")

    @cached_property
    def _socket(self) -> socket.socket:
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        weakref.finalize(self, opened.close)
        return opened

    def index(self, interface: bytes) -> int:
        """Return the number that an interface keeps while it exists. Raises: UnavailableError when it is gone."""
        try:
            answer = self._ioctl(self._socket, SIOCGIFINDEX, INDEX.pack(interface, 0))
        except OSError as error:
            raise _refused("SIOCGIFINDEX", interface, error) from error
        return int(INDEX.unpack(answer)[1])

    def driver(self, interface: bytes) -> Driver:
        """Return its driver. Raises: UnavailableError."""
        self._ask(interface, GDRVINFO, bytes(DRIVER.size))
        name, version = DRIVER.unpack_from(self._memory)
        return Driver(_text(name), _text(version))

    def names(self, interface: bytes) -> tuple[str, ...]:
        """Return its driver's names of the statistics, in their order.

        Raises: UnavailableError, MalformedError.
        """
        self._ask(interface, GSSET_INFO, COUNT.pack(0, 0, 1 << STATISTICS, 0))
        _, _, mask, count = COUNT.unpack_from(self._memory)
        if not mask or count == 0:
            return ()
        _refuse_too_many(count, interface)
        self._ask(interface, GSTRINGS, STRINGS.pack(0, STATISTICS, count))
        count = STRINGS.unpack_from(self._memory)[2]
        _refuse_too_many(count, interface)
        places = range(STRINGS.size, STRINGS.size + NAME_BYTES * count, NAME_BYTES)
        return tuple(_text(self._memory[place : place + NAME_BYTES]) for place in places)

    def values(self, interface: bytes, expected: int) -> Sequence[int]:
        """Return the statistics in the order of their names, valid until the next call.

        There may be more or fewer than expected: then the names have changed.
        Raises: UnavailableError, MalformedError.
        """
        self._ask(interface, GSTATS, NUMBERS.pack(0, expected))
        count = NUMBERS.unpack_from(self._memory)[1]
        _refuse_too_many(count, interface)
        return self._words[1 : 1 + count]

    def _ask(self, interface: bytes, command: int, question: bytes) -> None:
        self._memory[: len(question)] = command.to_bytes(4, sys.byteorder) + question[4:]
        try:
            self._ioctl(self._socket, SIOCETHTOOL, REQUEST.pack(interface, self._address))
        except OSError as error:
            raise _refused(f"SIOCETHTOOL {command:#x}", interface, error) from error


def _text(field: bytes) -> str:
    return printable(field.partition(b"\0")[0].strip())


def _refused(what: str, interface: bytes, error: OSError) -> UnavailableError:
    return UnavailableError(f"{what} of {printable(interface)}: {error.strerror}")


def _refuse_too_many(count: int, interface: bytes) -> None:
    if count > MOST:
        raise MalformedError(f"SIOCETHTOOL of {printable(interface)}: {count} statistics, expected at most {MOST}")
