"""The kernel's tables of network objects, read over a netlink socket that stays open."""

import os
import socket
import struct
import weakref
from collections.abc import Callable, Iterator
from typing import Final

from crosswind.data.schema.errors import MalformedError, UnavailableError

HEADER = struct.Struct("=IHHII")  # struct nlmsghdr: length, type, flags, sequence, port
ATTRIBUTE = struct.Struct("=HH")  # struct rtattr: length, type
ERROR_NUMBER = struct.Struct("=i")
NLMSG_ERROR: Final = 2
NLMSG_DONE: Final = 3
NLM_F_REQUEST: Final = 0x1
NLM_F_DUMP_INTR: Final = 0x10
NLM_F_DUMP: Final = 0x300
TYPE_MASK: Final = 0x3FFF  # the upper two bits say how the content is laid out
ATTEMPTS: Final = 3
DATAGRAM_BYTES: Final = 256 * 1024  # the kernel fills 32 KiB at most
MOST_DATAGRAMS: Final = 10_000
WAIT = struct.pack("@ll", 2, 0)  # struct timeval: the kernel answers at once, or not at all

Connect = Callable[[], socket.socket]


def route_socket() -> socket.socket:
    """Return a socket for queries of interfaces, addresses, routes and queues of this network namespace."""
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)


class Netlink:
    """Reads whole tables of the kernel. Not for several threads at once.

    Source: netlink(7), rtnetlink(7); https://docs.kernel.org/userspace-api/netlink/intro.html
    """

    def __init__(self, connect: Connect = route_socket) -> None:
        self._connect = connect
        self._open: list[socket.socket] = []  # one, or none
        self._sequence = 0
        self._buffer = bytearray(DATAGRAM_BYTES)
        weakref.finalize(self, close_all, self._open)

    def table(self, request: int, body: bytes) -> list[bytes]:
        """Return the content of each message of a table, read again if it changed meanwhile.

        Raises: UnavailableError when it is refused, late, or keeps changing; MalformedError if it is not netlink.
        """
        try:
            for _ in range(ATTEMPTS):
                messages = self._asked(request, body)
                if messages is not None:
                    return messages
        except OSError as error:
            self.close()  # late messages must not answer the next query
            raise UnavailableError(f"netlink request {request}: {error.strerror}") from error
        except (UnavailableError, MalformedError):
            self.close()
            raise
        raise UnavailableError(f"netlink request {request}: changed {ATTEMPTS} times while being read")

    def close(self) -> None:
        """Close the socket; the next query opens another."""
        close_all(self._open)

    def _asked(self, request: int, body: bytes) -> list[bytes] | None:
        if not self._open:
            self._open.append(self._connect())
            self._open[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, WAIT)
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        flags = NLM_F_REQUEST | NLM_F_DUMP
        self._open[0].send(HEADER.pack(HEADER.size + len(body), request, flags, self._sequence, 0) + body)
        return self._answer(self._open[0])

    def _answer(self, source: socket.socket) -> list[bytes] | None:
        """Return the messages up to the last; None when the kernel says that they are inconsistent."""
        messages: list[bytes] = []
        whole = True
        for _ in range(MOST_DATAGRAMS):
            for kind, flags, content in self._messages(source):
                whole = whole and not flags & NLM_F_DUMP_INTR
                if kind in (NLMSG_DONE, NLMSG_ERROR):
                    _raise_if_refused(content)
                    return messages if whole else None
                messages.append(content)
        raise MalformedError(f"netlink: expected an end within {MOST_DATAGRAMS} datagrams")

    def _messages(self, source: socket.socket) -> Iterator[tuple[int, int, bytes]]:
        """Yield type, flags and content of each message of one datagram that answers the last query."""
        size, _, flags, sender = source.recvmsg_into([self._buffer])
        if flags & socket.MSG_TRUNC:
            raise MalformedError(f"netlink: a datagram of more than {DATAGRAM_BYTES} bytes")
        if sender and sender[0] != 0:  # another process, not the kernel
            return
        begin = 0
        while begin < size:
            if size - begin < HEADER.size:
                raise MalformedError(f"netlink: {size - begin} bytes left, expected {HEADER.size} or more")
            length, kind, flags, sequence, _ = HEADER.unpack_from(self._buffer, begin)
            if not HEADER.size <= length <= size - begin:
                raise MalformedError(f"netlink: a message of {length} bytes, {size - begin} are left")
            if sequence == self._sequence:
                yield kind, flags, bytes(self._buffer[begin + HEADER.size : begin + length])
            begin += _aligned(length)


def attributes(content: bytes, begin: int, end: int) -> dict[int, tuple[int, int]]:
    """Return the range of the content of each attribute between `begin` and `end`. Raises: MalformedError."""
    places: dict[int, tuple[int, int]] = {}
    while end - begin >= ATTRIBUTE.size:
        length, kind = ATTRIBUTE.unpack_from(content, begin)
        if not ATTRIBUTE.size <= length <= end - begin:
            raise MalformedError(f"netlink: an attribute of {length} bytes, {end - begin} are left")
        places.setdefault(kind & TYPE_MASK, (begin + ATTRIBUTE.size, begin + length))
        begin += _aligned(length)
    return places


def close_all(sockets: list[socket.socket]) -> None:
    """Close these sockets, and forget them."""
    while sockets:
        sockets.pop().close()


def _aligned(length: int) -> int:
    return (length + 3) & ~3


def _raise_if_refused(content: bytes) -> None:
    number = ERROR_NUMBER.unpack_from(content)[0] if len(content) >= ERROR_NUMBER.size else 0
    if number < 0:
        raise UnavailableError(f"netlink: {os.strerror(-number)}")
