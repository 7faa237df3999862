"""Admission of connections: as many as the limits allow; of those without a request the longest idle go first."""

import ipaddress
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import chain
from typing import Protocol

from starlette.responses import Response
from starlette.types import ASGIApp

from crosswind.api.edge.limits import Limits
from crosswind.api.peer import Peer
from crosswind.api.prefix import inner_path
from crosswind.api.problems import BUSY, TOO_MANY, UNAVAILABLE, Kind, problem
from crosswind.api.security_headers import HEADERS

HEALTH = "/healthz"
STOPPING = "the server stops; nothing was changed"
ENDING_SECONDS = 5.0  # for requests in progress when it stops
GUEST_SECONDS = 3.0  # for a request over a connection beyond the limits
IPV6_PREFIX = 64  # bits that one customer has at least


class OpenConnection(Protocol):
    """A connection, as its admission sees it."""

    client_key: str
    since: float  # it is idle

    @property
    def is_idle(self) -> bool:
        """Return whether no request is in progress over it."""
        ...

    def leave(self) -> None:
        """End it, and let go of it at once."""
        ...

    def cut_off(self) -> None:
        """End it without another word."""
        ...

    def end_if_overdue(self, now: float) -> None:
        """End it when something has taken too long."""
        ...


class Edge:
    """The connections of a server, by client.

    One too many takes the place of an idle one: of the same client where that has too many, else of the client with
    most. Where none is idle it becomes a guest, who may ask for /healthz and is refused everything else.
    """

    def __init__(self, limits: Limits, root_path: str = "") -> None:
        self.limits = limits
        self.refusals: Counter[str] = Counter()  # by kind
        self._root_path = root_path
        self._ending_since: float | None = None
        self._clients: defaultdict[str, dict[OpenConnection, None]] = defaultdict(dict)  # in order of arrival
        self._guests: dict[OpenConnection, Kind] = {}

    @property
    def connection_count(self) -> int:
        """Return how many connections are open, without guests."""
        return sum(map(len, self._clients.values()))

    @property
    def guest_count(self) -> int:
        """Return how many connections are open beyond the limits."""
        return len(self._guests)

    @property
    def busiest_count(self) -> int:
        """Return how many connections the client has that has most."""
        return max(map(len, self._clients.values()), default=0)

    def admit(self, connection: OpenConnection) -> None:
        """Take in a new connection."""
        own = self._clients[connection.client_key]
        if len(own) >= self.limits.client_connections and not _closed_idle(own):
            self._receive_guest(connection, TOO_MANY)
        elif self.connection_count >= self.limits.connections and not self._made_room():
            self._receive_guest(connection, BUSY)
        else:
            self._clients[connection.client_key][connection] = None

    def forget(self, connection: OpenConnection) -> None:
        """Drop a connection that has ended."""
        self._guests.pop(connection, None)
        own = self._clients.get(connection.client_key)
        if own is not None:
            own.pop(connection, None)
            if not own:
                del self._clients[connection.client_key]

    def end(self) -> None:
        """Refuse what comes from now on; requests in progress are answered."""
        self._ending_since = time.monotonic()

    @property
    def is_ending(self) -> bool:
        """Return whether new requests are refused, as the server stops."""
        return self._ending_since is not None

    @property
    def has_ended(self) -> bool:
        """Return whether the server may stop: no request is in progress, or they have had their time."""
        if self._ending_since is None:
            return False
        is_over = time.monotonic() - self._ending_since >= ENDING_SECONDS
        every = chain.from_iterable(self._clients.values())
        return is_over or all(connection.is_idle for connection in every)

    def app_for(self, connection: OpenConnection, app: ASGIApp, path: str) -> ASGIApp:
        """Return what answers a request: the application, or to a guest a refusal."""
        kind = UNAVAILABLE if self.is_ending else self._guests.get(connection)
        if kind is None or inner_path(path, self._root_path) == HEALTH:
            return app
        self.refusals[kind.name] += 1
        return self.refusal(kind, STOPPING if self.is_ending else kind.remedy)

    def refusal(self, kind: Kind, detail: str) -> Response:
        """Return the last answer over a connection."""
        return problem(kind, detail, root_path=self._root_path, headers={**HEADERS, "Connection": "close"})

    def is_guest(self, connection: OpenConnection) -> bool:
        """Return whether it is beyond the limits."""
        return connection in self._guests

    async def sweep(self) -> None:
        """End what has taken too long; called every second."""
        now = time.monotonic()
        for connection in [*chain.from_iterable(self._clients.values()), *self._guests]:
            connection.end_if_overdue(now)

    def _receive_guest(self, connection: OpenConnection, kind: Kind) -> None:
        if len(self._guests) >= self.limits.reserved_connections and not _closed_idle(self._guests):
            connection.cut_off()
        self._guests[connection] = kind

    def _made_room(self) -> bool:
        largest = sorted(self._clients.values(), key=len, reverse=True)
        return any(map(_closed_idle, largest))


def _closed_idle(connections: Iterable[OpenConnection]) -> bool:
    """Return whether one of the connections was idle; the one that was so the longest is closed."""
    idle = [connection for connection in connections if connection.is_idle]
    if idle:
        min(idle, key=lambda connection: connection.since).leave()
    return bool(idle)


def client_key(peer: Peer) -> str:
    """Return what connections of one client have in common: its user on this machine, else the address's network."""
    if peer.uid is not None:
        return f"user {peer.uid}"
    return network(peer.address or "")


def network(host: str) -> str:
    """Return an address, or of IPv6 its network, which one client may have whole."""
    if ":" not in host:
        return host
    try:
        address = ipaddress.IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    return str(address.ipv4_mapped or ipaddress.IPv6Network((address, IPV6_PREFIX), strict=False))
