"""Limits on what clients may hold of a server; docs/operations.md lists them."""

import resource
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Self

from crosswind.data.schema.errors import InvalidInputError

DIGITS_MAX = 15
FILES_BESIDE = 256  # of the process itself: the store, its connections to the catalog, libraries


@dataclass(frozen=True)
class Limits:
    """Limits on what clients hold at once, on the parts of a request, and on the time that these take to arrive."""

    connections: int = 2000  # of all clients
    client_connections: int = 1200  # of one user of this machine, or one address; of IPv6, one /64
    reserved_connections: int = 64  # beyond those, for /healthz and for refusals that say why
    head_bytes: int = 32 * 1024  # address and header fields of a request
    headers: int = 100
    address_bytes: int = 8 * 1024
    streams: int = 1000  # of events, of all callers
    client_streams: int = 50  # of one caller
    pipelined: int = 16  # requests sent before the answer to the first
    head_seconds: int = 10  # from the first byte, or from the connection, to the end of the header fields
    idle_seconds: int = 10  # between two parts of a body, and before its rate counts
    body_bytes_a_second: int = 16 * 1024  # on average; the same for the client that reads an answer
    spooled_bytes: int = 1024**3  # of bodies that are not whole yet, in unnamed files of the temporary folder

    def __post_init__(self) -> None:
        for limit in fields(self):
            if getattr(self, limit.name) < 1:
                raise InvalidInputError(f"limit {limit.name}: {getattr(self, limit.name)}, expected 1 or more")

    @classmethod
    def of(cls, words: Iterable[str]) -> Self:
        """Return the limits that words such as `connections=500` set; the others are the defaults.

        Raises: InvalidInputError.
        """
        names = [limit.name for limit in fields(cls)]
        pairs = [word.partition("=") for word in words]
        for name, _, value in pairs:
            if name not in names:
                raise InvalidInputError(f"limit {name!r:.60}: expected one of {', '.join(names)}")
            if not (value.isascii() and value.isdecimal() and len(value) <= DIGITS_MAX):
                raise InvalidInputError(f"limit {name}: {value!r:.60}, expected a whole number")
        return cls(**{name: int(value) for name, _, value in pairs})

    def within_files(self) -> Self:
        """Return the limits that the process has open files for, after raising the number it may have as far as needed.

        A connection takes one, and its body at most another one.
        """
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = 2 * (self.connections + self.reserved_connections) + FILES_BESIDE
        if soft != resource.RLIM_INFINITY and soft < wanted:
            soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        room = wanted if soft == resource.RLIM_INFINITY else soft
        most = (room - FILES_BESIDE) // 2 - self.reserved_connections
        return self if most >= self.connections else replace(self, connections=max(1, most))
