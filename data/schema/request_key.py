"""The key that tells a request that is sent again from a new one."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RequestKey:
    """The name that a client gave to a request, and a hash of what it asked for."""

    key: str
    fingerprint: str
