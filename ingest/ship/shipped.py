"""The counts of a shipper, in a file of their own: their readers need no HTTP."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shipped:
    """The counts of a shipper since it began; `problem` is why it waits, None when it does not."""

    segments: int = 0
    retries: int = 0
    rejected: int = 0
    sent_bytes: int = 0
    problem: str | None = None
