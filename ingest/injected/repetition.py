"""The step of a training that marks none: the collectives that it repeats.

Ranks that launch the same collectives find the same repetition after the same one of them, so their steps have the same
numbers without any communication.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field

REPEATS = 4  # of a pattern, before it is believed
MOST = 1 << 14  # collectives: what has not repeated in so many is not looked for any longer


def period_of(events: list[Hashable]) -> int | None:
    """Return the length of the shortest pattern that the last three quarters of the events repeat; None without one.

    Source: Knuth, Morris, Pratt 1977 (the longest border of a text gives its shortest period).
    """
    tail = events[len(events) // 4 :]
    borders = [0] * len(tail)
    for place in range(1, len(tail)):
        border = borders[place - 1]
        while border and tail[place] != tail[border]:
            border = borders[border - 1]
        borders[place] = border + (tail[place] == tail[border])
    period = len(tail) - borders[-1] if tail else 0
    return period if 0 < REPEATS * period <= len(tail) else None


@dataclass
class Repetition:
    """Follows the collectives of a rank; `least` is the number of them before a pattern is looked for."""

    least: int
    _seen: list[Hashable] = field(default_factory=list)
    _pattern: list[Hashable] = field(default_factory=list)
    _place: int = 0  # in the pattern

    def ends_step(self, event: Hashable) -> bool:
        """Take the next collective. Return whether a whole pattern has passed with it."""
        if not self._pattern:
            return self._search(event)
        if event != self._pattern[self._place]:  # another phase of the program, or no step after all
            self._pattern, self._seen, self._place = [], [event], 0
            return False
        self._place = (self._place + 1) % len(self._pattern)
        return self._place == 0

    def _search(self, event: Hashable) -> bool:
        if len(self._seen) >= MOST:
            return False
        self._seen.append(event)
        count = len(self._seen)
        if count < self.least or count % self.least or (count // self.least).bit_count() > 1:  # least, 2 least, 4 ...
            return False
        if period := period_of(self._seen):
            self._pattern, self._seen = self._seen[-period:], []
        return bool(period)
