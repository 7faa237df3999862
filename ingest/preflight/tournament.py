"""The schedule of pairs in rounds: a round-robin tournament."""

from collections.abc import Sequence

Pair = tuple[int, int]


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
