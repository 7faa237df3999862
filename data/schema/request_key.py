"""The key that tells a request that is sent again from a new one."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class RequestKey:
    """The name that a client gave to a request, a hash of what it asked for, and who asked.

    The keys of one caller mean nothing to another; `caller` is empty in a store or folder of one's own.
    """

    key: str
    fingerprint: str
    caller: str = ""

    @property
    def stored(self) -> str:
        """The text by which the request is remembered: 64 characters, or those of a key without caller."""
        return hashlib.sha256(f"{self.caller}\0{self.key}".encode()).hexdigest() if self.caller else self.key
