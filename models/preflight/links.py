"""Latency and bandwidth of the link between two nodes, from the times of messages."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import linear_regression

from crosswind.data.schema.checks import MESSAGE, Measured
from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.machine.links import Link

LEAST_SECONDS = 1e-9  # the resolution of clocks
LEAST_SIZES = 2


def fitted(sizes: Sequence[int], seconds: Sequence[float]) -> Link:
    """The link with t = alpha + n / beta, from the sizes of messages and the seconds that they took.

    1 / beta is the slope by least squares, which long messages decide: buffers on the way let shorter ones through at
    once. Alpha is the time of the shortest beyond its bytes. Raises: InvalidInputError for fewer than two sizes, or
    when longer messages took no longer.
    """
    if len(set(sizes)) < LEAST_SIZES or len(sizes) != len(seconds):
        raise InvalidInputError(
            f"{len(set(sizes))} sizes, {len(seconds)} times: expected two sizes and a time for each"
        )
    slope = linear_regression(sizes, seconds).slope
    if not slope > 0:
        raise InvalidInputError(f"seconds {list(seconds)[:6]}: expected longer messages to take longer")
    size, least = min(zip(sizes, seconds, strict=True))
    return Link(max(least - size * slope, 0.0), 1 / slope)


def link_values(measured: Iterable[Measured]) -> list[Measured]:
    """Latency and bandwidth of every pair with messages of two sizes."""
    messages = sorted((message for message in measured if message.measure == MESSAGE), key=_pair)
    values: list[Measured] = []
    for (node, peer, method), of_pair in groupby(messages, key=_pair):
        samples = [(message.size_bytes or 0, message.value) for message in of_pair]
        try:
            link = fitted([size for size, _ in samples], [seconds for _, seconds in samples])
        except InvalidInputError:
            continue
        values.append(Measured(node, "latency", max(link.alpha_seconds, LEAST_SECONDS), peer=peer, method=method))
        values.append(Measured(node, "bandwidth", link.bytes_per_second, peer=peer, method=method))
    return values


def _pair(measured: Measured) -> tuple[str, str, str]:
    return measured.node, measured.peer or "", measured.method
