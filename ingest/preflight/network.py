"""The network between the nodes of an allocation: messages of every pair, and all-reduces of all ranks."""

import time
from collections.abc import Iterator, Sequence
from statistics import median

from crosswind.data.schema.checks import ALL_REDUCE, MESSAGE, Measured
from crosswind.ingest.preflight.peers import Peers

MESSAGE_BYTES = (8, 1024, 16 * 1024, 128 * 1024, 1024 * 1024, 8 * 1024 * 1024)
NEEDED_SIZES = 4  # measured by every pair, even a slow one: latency and bandwidth need short and long ones
ALL_REDUCE_GROWTH = 8
ALL_REDUCE_BYTES = tuple(1024 * ALL_REDUCE_GROWTH**power for power in range(5))  # 1 KiB to 4 MiB
WARM_UP, LEAST, MOST = 2, 5, 200  # messages of one size
REPEATS = 5
FIRST_SECONDS = 1e-4  # the expected time of the shortest message
Pair = tuple[int, int]


def leaders(nodes: tuple[str, ...]) -> list[int]:
    """Return the first rank of every node."""
    return [rank for rank, node in enumerate(nodes) if node not in nodes[:rank]]


def rounds(players: Sequence[int]) -> list[list[Pair]]:
    """Return rounds in which nobody has two opponents, and after which all have met: n - 1 of them, n if n is odd.

    Source: the circle method of round-robin tournaments (Kirkman 1850): one stays, the others turn.
    """
    if len(players) < 2:
        return []
    circle: list[int | None] = [*players, *([None] if len(players) % 2 else [])]
    half = len(circle) // 2
    made = []
    for _ in range(len(circle) - 1):
        facing = zip(circle[:half], reversed(circle[half:]), strict=True)
        made.append([(min(a, b), max(a, b)) for a, b in facing if a is not None and b is not None])
        circle = [circle[0], circle[-1], *circle[1:-1]]
    return made


def pairs(peers: Peers, seconds: float) -> Iterator[Measured]:
    """Yield the least seconds of one message between two nodes, by size, as the pair's lower rank measured them.

    The least is the link's own time; disturbances of the ends are the subject of other measures.

    Every pair of nodes once, and no node in two pairs at a time; when the time is over, the remaining rounds are
    skipped. Raises: UnavailableError.
    """
    schedule = rounds(leaders(tuple(peers.nodes)))
    ends = time.monotonic() + seconds
    for round_ in schedule:
        if not peers.go_on(wanted=time.monotonic() < ends):
            return
        for pair in round_:
            if peers.place.rank in pair:
                yield from _messages(peers, pair, seconds / len(schedule))
    peers.go_on(wanted=False)


def all_reduces(peers: Peers, seconds: float) -> Iterator[Measured]:
    """Yield seconds of an all-reduce over all ranks, by the size of its buffer, as rank 0 measured them.

    Sizes that would take longer than the time left are skipped. Raises: UnavailableError.
    """
    ends, expected = time.monotonic() + seconds, 0.0
    for size in ALL_REDUCE_BYTES:
        if not peers.go_on(wanted=time.monotonic() + expected * (WARM_UP + REPEATS) < ends):
            return
        peers.all_reduce(size, WARM_UP)
        taken = median(peers.all_reduce(size, REPEATS))
        expected = taken * ALL_REDUCE_GROWTH
        if peers.place.rank == 0:
            method = f"{peers.method} ranks={peers.place.world_size} nodes={len(set(peers.nodes))}"
            yield Measured(peers.place.node, ALL_REDUCE, taken, size_bytes=size, method=method)


def _messages(peers: Peers, pair: tuple[int, int], seconds: float) -> Iterator[Measured]:
    """Yield times by size; the lower rank decides on the number of messages, and skips sizes that take too long."""
    other, taken, before = sum(pair) - peers.place.rank, FIRST_SECONDS, MESSAGE_BYTES[0]
    for number, size in enumerate(MESSAGE_BYTES):
        count = peers.settle(other, _count(number, taken * size / before, seconds))
        if not count:
            return
        peers.exchange(other, size, WARM_UP)
        times = peers.exchange(other, size, count)
        taken, before = median(times), size
        if peers.place.rank == pair[0]:
            ends = sorted((peers.place.node, peers.nodes[other]))
            yield Measured(ends[0], MESSAGE, min(times), peer=ends[1], size_bytes=size, method=peers.method)


def _count(number: int, expected_seconds: float, seconds: float) -> int:
    """Return how many messages each way fit into the size's share of the time; 0 if even the fewest do not."""
    if number >= NEEDED_SIZES and 2 * (WARM_UP + LEAST) * expected_seconds > seconds:
        return 0
    share = seconds / len(MESSAGE_BYTES) / 2
    return max(LEAST, min(MOST, int(share / expected_seconds)))
