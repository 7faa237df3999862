"""Links between two devices: the time of a message."""

from dataclasses import dataclass

from crosswind.models.analytic.checks import require_count, require_not_negative, require_positive


@dataclass(frozen=True)
class Link:
    """A connection by Hockney's two figures: the latency of any message, and the rate of its bytes.

    Source: Hockney 1994, "The communication challenge for MPP: Intel Paragon and Meiko CS-2".
    """

    alpha_seconds: float
    bytes_per_second: float

    def __post_init__(self) -> None:
        require_not_negative(alpha_seconds=self.alpha_seconds)
        require_positive(bytes_per_second=self.bytes_per_second)

    def seconds(self, n_bytes: float) -> float:
        """alpha + n / beta."""
        return self.alpha_seconds + n_bytes / self.bytes_per_second

    def shared_by(self, sharers: int) -> "Link":
        """Return the link of one of several `sharers` that use it at once."""
        require_count(sharers=sharers)
        return Link(self.alpha_seconds, self.bytes_per_second / sharers)


@dataclass(frozen=True)
class LogGP:
    """A connection by latency L, processor overhead o, gap g between messages and gap G between bytes, in seconds.

    Source: Alexandrov, Ionescu, Schauser, Scheiman 1995, "LogGP: incorporating long messages into the LogP model".
    """

    latency_seconds: float
    overhead_seconds: float
    gap_seconds: float
    gap_seconds_per_byte: float

    def __post_init__(self) -> None:
        require_not_negative(
            latency_seconds=self.latency_seconds, overhead_seconds=self.overhead_seconds, gap_seconds=self.gap_seconds
        )
        require_positive(gap_seconds_per_byte=self.gap_seconds_per_byte)

    def seconds(self, n_bytes: float) -> float:
        """L + 2o + (n - 1) G, from the sender's first instruction to the receiver's last; n is 1 at least."""
        require_positive(n_bytes=n_bytes)
        return self.latency_seconds + 2 * self.overhead_seconds + max(n_bytes - 1, 0.0) * self.gap_seconds_per_byte

    def burst_seconds(self, n_messages: int, n_bytes: float) -> float:
        """Seconds of n_messages in a row: each starts max(g, o) after the one before has left."""
        require_count(n_messages=n_messages)
        wait = max(self.gap_seconds, self.overhead_seconds) + max(n_bytes - 1, 0.0) * self.gap_seconds_per_byte
        return (n_messages - 1) * wait + self.seconds(n_bytes)

    def link(self) -> Link:
        """The link of alpha = L + 2o and beta = 1 / G, exact but for the first byte."""
        return Link(self.latency_seconds + 2 * self.overhead_seconds, 1 / self.gap_seconds_per_byte)
