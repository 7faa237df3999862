"""A question for the history of a node."""

from dataclasses import dataclass

from crosswind.data.schema.errors import InvalidInputError

HISTORY_NS = 7 * 86_400_000_000_000
LISTED, LISTED_MAX = 50, 500  # of jobs, runs and gaps


@dataclass(frozen=True)
class HistoryQuestion:
    """The time of a node that is wanted, ns UTC, and how many jobs, runs and gaps at most; None: the last week."""

    from_ns: int | None = None
    to_ns: int | None = None
    limit: int = LISTED

    def span(self, now_ns: int) -> tuple[int, int]:
        """Return the time. Raises: InvalidInputError."""
        to_ns = now_ns if self.to_ns is None else self.to_ns
        from_ns = max(0, to_ns - HISTORY_NS) if self.from_ns is None else self.from_ns
        if from_ns >= to_ns:
            raise InvalidInputError(f"from {from_ns}, to {to_ns} (ns UTC): expected a time that is later than from")
        if not 1 <= self.limit <= LISTED_MAX:
            raise InvalidInputError(f"limit {self.limit}: expected 1 to {LISTED_MAX}")
        return from_ns, to_ns
