"""The user whose socket is at the other end of a TCP connection over loopback, by the kernel's own tables."""

import ipaddress
import os
import socket
import struct
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Final

from crosswind.ingest.kernel.netlink import HEADER, NLM_F_REQUEST, WAIT

NETLINK_SOCK_DIAG: Final = 4
SOCK_DIAG_BY_FAMILY: Final = 20
TCP_ESTABLISHED: Final = 1
REQUEST = struct.Struct("=BBBxI")  # struct inet_diag_req_v2: family, protocol, extensions, states; then the socket's id
SOCKET_ID = struct.Struct("!HH16s16s")  # struct inet_diag_sockid: ports and addresses; then interface and cookie
ANY_COOKIE = struct.pack("=I", 0) + b"\xff" * 8
MESSAGE = struct.Struct("=BBxx48s3III")  # struct inet_diag_msg: family, state, id, (3 unused), uid, inode
DATAGRAM_BYTES: Final = 8192
MAPPED = b"\0" * 10 + b"\xff\xff"  # an IPv4 address in a socket of IPv6
OVERFLOW_UID = Path("/proc/sys/kernel/overflowuid")
UID_MAP = Path("/proc/self/uid_map")

Address = tuple[str, int]


def owner_of_peer(connection: socket.socket) -> int | None:
    """Return the uid of the process that made the other end's socket, over TCP on loopback or a Unix socket.

    None where the kernel does not say it for sure: the other end is elsewhere, in another network namespace, or closing
    already. A closed socket is never answered for, because the kernel gives its owner as root.
    """
    try:
        if connection.family == socket.AF_UNIX:
            return _named(_unix_peer(connection))
        client, server = connection.getpeername()[:2], connection.getsockname()[:2]
        if not (_is_loopback(client[0]) and _is_loopback(server[0])):
            return None
        uid = _owner(connection.family, client, server)
        # Only while our end is established do these addresses still mean the connection that we have accepted.
        is_open = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_ESTABLISHED
    except (OSError, ValueError):
        return None
    return _named(uid) if is_open else None


def _unix_peer(connection: socket.socket) -> int:
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    uid: int = struct.unpack("=iII", packed)[1]  # struct ucred: pid, uid, gid
    return uid


def _owner(family: int, client: Address, server: Address) -> int | None:
    """Return the uid of the established socket that is bound to `client` and connected to `server`.

    Source: sock_diag(7); include/uapi/linux/inet_diag.h of the kernel.
    """
    name = SOCKET_ID.pack(client[1], server[1], _packed(client[0]), _packed(server[0]))
    body = REQUEST.pack(family, socket.IPPROTO_TCP, 0, 1 << TCP_ESTABLISHED) + name + ANY_COOKIE
    with closing(socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG)) as asker:
        asker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, WAIT)
        asker.send(HEADER.pack(HEADER.size + len(body), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 1, 0) + body)
        return _uid_in(asker.recv(DATAGRAM_BYTES), client, server)


def _uid_in(answer: bytes, client: Address, server: Address) -> int | None:
    """Return the uid in the kernel's answer; None where it is an error or about another socket, such as a listener."""
    if len(answer) < HEADER.size + MESSAGE.size or HEADER.unpack_from(answer)[1] != SOCK_DIAG_BY_FAMILY:
        return None
    _, state, name, _, _, _, uid, inode = MESSAGE.unpack_from(answer, HEADER.size)
    source_port, target_port, source, target = SOCKET_ID.unpack_from(name)
    is_asked = (source_port, target_port) == (client[1], server[1])
    is_asked = is_asked and source in _forms(client[0]) and target in _forms(server[0])
    return int(uid) if is_asked and state == TCP_ESTABLISHED and inode else None


def _packed(host: str) -> bytes:
    return ipaddress.ip_address(host).packed.ljust(16, b"\0")


def _forms(host: str) -> tuple[bytes, ...]:
    packed = ipaddress.ip_address(host).packed
    return (_packed(host),) if len(packed) == 16 else (_packed(host), MAPPED + packed)


def _is_loopback(host: str) -> bool:
    return ipaddress.ip_address(host).is_loopback


def _named(uid: int | None) -> int | None:
    """Return the uid, unless it may stand for every user that this user namespace has no number for."""
    return None if uid == _ambiguous_uid() else uid


@cache
def _ambiguous_uid() -> int | None:
    """Return the number that the kernel gives users without one here; None where every user has one."""
    is_whole = UID_MAP.read_text().split() == ["0", "0", "4294967295"]
    return None if is_whole else int(OVERFLOW_UID.read_text())


def is_own_or_root(uid: int | None) -> bool:
    """Return whether this uid is known, and that of this process's user or of root."""
    return uid is not None and uid in {os.geteuid(), 0}
