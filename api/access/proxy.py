"""A proxy that has logged people in already, and names them in a header field, as Open OnDemand's does."""

import ipaddress
import pwd
from dataclasses import dataclass
from typing import Self

from crosswind.api.peer import Peer
from crosswind.data.schema.errors import InvalidInputError

UNIX = "unix"


@dataclass(frozen=True)
class TrustedProxy:
    """The one address from which a header field may name the user; on this machine also the proxy's own user.

    Without that user, every process of this machine could name anybody.
    """

    address: ipaddress.IPv4Address | ipaddress.IPv6Address | None  # None: the Unix socket
    uid: int | None

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the proxy that `ADDRESS`, `ADDRESS@USER` or `unix@USER` names. Raises: InvalidInputError."""
        host, _, user = text.partition("@")
        try:
            address = None if host == UNIX else ipaddress.ip_address(host.strip("[]"))
        except ValueError as error:
            raise InvalidInputError(f"trusted proxy {text!r:.80}: expected the IP address of a proxy") from error
        is_local = address is None or address.is_loopback
        if is_local and not user:
            raise InvalidInputError(
                f"trusted proxy {text!r:.80}: every user of this machine can connect from there: "
                f"name the proxy's own user, as in {host}@apache"
            )
        if user and not is_local:
            raise InvalidInputError(f"trusted proxy {text!r:.80}: only for 127.0.0.1, ::1 and unix is the user known")
        return cls(address, _uid(user) if user else None)

    def is_at(self, peer: Peer) -> bool:
        """Return whether this is the other end of a connection."""
        if self.address is None:
            return peer.is_unix and peer.uid == self.uid
        is_there = peer.address is not None and ipaddress.ip_address(peer.address.partition("%")[0]) == self.address
        return is_there and (self.uid is None or peer.uid == self.uid)


def _uid(user: str) -> int:
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError as error:
        raise InvalidInputError(f"trusted proxy: user {user!r:.80} is not on this machine") from error
