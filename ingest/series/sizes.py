"""Limits on the memory for one request or series: small requests can unpack to large ones."""

from collections.abc import Mapping

from crosswind.data.schema.errors import MalformedError

LABEL_BYTES = 16_384  # names and texts of the labels of one series
PARTS = 2_000_000  # messages, labels, numbers of one request; one of 20 000 points has some 300 000
REQUEST_BYTES = 1 << 29  # of all rows of a request, each with the texts of its series


class TooLargeError(MalformedError):
    """A request that holds, or would become, too much: its sender must send less at once."""


def check_labels(name: str, labels: Mapping[str, str]) -> int:
    """Return how many octets these labels have. Raises: MalformedError, which names the series, for too many."""
    size = sum(len(label.encode()) + len(text.encode()) for label, text in labels.items())
    if size > LABEL_BYTES:
        raise MalformedError(f"series {name[:200]!r}: labels of {size} bytes; expected at most {LABEL_BYTES}")
    return size


def check_parts(count: int) -> None:
    """Raises: TooLargeError."""
    if count > PARTS:
        raise TooLargeError(f"more than {PARTS} messages, labels and numbers in one request")


def check_rows(size: float) -> None:
    """Raises: TooLargeError."""
    if size > REQUEST_BYTES:
        raise TooLargeError(f"more than {REQUEST_BYTES} bytes of rows, as each sample has its labels")
