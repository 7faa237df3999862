"""The other end of a connection, as the kernel knows it; looked up once, when the connection is made."""

import asyncio
import socket
from dataclasses import dataclass
from typing import Any

from crosswind.ingest.kernel.socket_owner import is_own_or_root, owner_of_peer

PEER = "peer"  # its name in the state of a request


@dataclass(frozen=True)
class Peer:
    """The address of the other end, and its user's uid; None where the kernel does not say it for sure."""

    address: str | None = None
    uid: int | None = None
    is_unix: bool = False

    @property
    def is_own_or_root(self) -> bool:
        """Return whether it belongs to the user of this process, or to root."""
        return is_own_or_root(self.uid)

    @classmethod
    def of(cls, transport: asyncio.BaseTransport) -> "Peer":
        """Return the peer of a connection that was just accepted."""
        connection: Any = transport.get_extra_info("socket")
        if connection is None:
            return cls()
        if connection.family == socket.AF_UNIX:
            return cls(uid=owner_of_peer(connection), is_unix=True)
        name = transport.get_extra_info("peername")
        return cls(name[0] if name else None, owner_of_peer(connection))
