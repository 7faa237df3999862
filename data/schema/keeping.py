"""Policies of how long samples of nodes and their roll-ups are kept, as the settings of an installation have them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Self

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.metric import is_name

KEEP = "CROSSWIND_KEEP"
RAW, FOREVER = "raw", "forever"
DAY_SECONDS = 86_400
UNITS: Mapping[str, int] = {"s": 1, "m": 60, "h": 3600, "d": DAY_SECONDS, "w": 7 * DAY_SECONDS, "y": 365 * DAY_SECONDS}
LENGTH = re.compile(r"([1-9][0-9]{0,7})([smhdwy])")
ROLLUP = re.compile(r"rollup_([1-9][0-9]{0,4})s_(.+)")
EXAMPLE = "raw:30d,1m:1y,1h:forever"


def rollup_name(set_name: str, seconds: int) -> str:
    """Return the name of the set that holds the roll-ups of a set at this resolution."""
    return f"rollup_{seconds}s_{set_name}"


def resolution_of(rollup: str) -> int:
    """Return the resolution of a set of roll-ups, in seconds. Raises: InvalidInputError for the name of another set."""
    match = ROLLUP.fullmatch(rollup)
    if match is None:
        raise InvalidInputError(f"metric set {rollup!r:.80}: expected one of roll-ups")
    return int(match[1])


def rollups_of_set(stored: Iterable[str], set_name: str) -> list[int]:
    """Return the resolutions of a set's roll-ups among sets, finest first."""
    matches = filter(None, map(ROLLUP.fullmatch, stored))
    return sorted(int(match[1]) for match in matches if match[2] == set_name)


@dataclass(frozen=True)
class Kept:
    """Seconds for which raw rows are kept, and roll-ups by resolution in seconds, finest first; None: for ever."""

    raw: int | None = None
    rollups: Mapping[int, int | None] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Self:
        """Return what `raw:30d,1m:1y,1h:forever` says. Raises: InvalidInputError naming the part that is wrong."""
        pairs = [_pair(part.strip()) for part in text.split(",")]
        if [resolution for resolution, _ in pairs].count(RAW) != 1:
            raise _wrong(text, f"{RAW} once, such as {EXAMPLE}")
        rollups = {_resolution(resolution): _kept(kept) for resolution, kept in pairs if resolution != RAW}
        if len(rollups) != len(pairs) - 1:
            raise _wrong(text, "each resolution once")
        made = cls(_kept(dict(pairs)[RAW]), dict(sorted(rollups.items())))
        made._check(text)
        return made

    def _check(self, text: str) -> None:
        lengths = [_or_endless(seconds) for seconds in (self.raw, *self.rollups.values())]
        if lengths[0] < DAY_SECONDS:
            raise _wrong(text, f"{RAW} to be kept for a day or longer")
        if any(one > other for one, other in pairwise(lengths)):
            raise _wrong(text, "coarser rows to be kept at least as long as finer ones")
        if self.raw is not None and lengths[-1] == lengths[0]:
            raise _wrong(text, f"a roll-up that is kept longer than {RAW}, such as {EXAMPLE}")


@dataclass(frozen=True)
class KeepPolicy:
    """A rule for all sets of samples of nodes, and others for some; of a set without a rule everything is kept."""

    general: Kept = Kept()
    by_set: Mapping[str, Kept] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the policy `raw:30d,1h:forever; gpu=raw:90d,10s:forever`. Raises: InvalidInputError."""
        general: list[Kept] = []
        by_set: dict[str, Kept] = {}
        for part in filter(None, map(str.strip, text.split(";"))):
            name, mark, kept = part.rpartition("=")
            if not mark:
                general.append(Kept.of(kept))
            elif not is_name(name.strip()) or name.strip() in by_set:
                raise _wrong(part, "the name of a metric set, once, before =")
            else:
                by_set[name.strip()] = Kept.of(kept)
        if len(general) > 1:
            raise _wrong(text, "one rule without the name of a set")
        return cls(general[0] if general else Kept(), by_set)

    def kept(self, set_name: str) -> Kept:
        """Return what is kept of a set."""
        return self.by_set.get(set_name, self.general)


EVERYTHING = KeepPolicy()


def _pair(part: str) -> tuple[str, str]:
    resolution, mark, kept = part.partition(":")
    if not mark:
        raise _wrong(part, f"a resolution, a colon and a time, such as {EXAMPLE}")
    return resolution.strip(), kept.strip()


def _resolution(text: str) -> int:
    seconds = _seconds(text, f"{RAW}, or a resolution such as 10s, 1m or 1h")
    if DAY_SECONDS % seconds:
        raise _wrong(text, "a resolution that divides a day")
    return seconds


def _kept(text: str) -> int | None:
    return None if text == FOREVER else _seconds(text, f"a time such as 30d or 1y, or {FOREVER}")


def _seconds(text: str, expected: str) -> int:
    match = LENGTH.fullmatch(text)
    if match is None:
        raise _wrong(text, expected)
    return int(match[1]) * UNITS[match[2]]


def _or_endless(seconds: int | None) -> float:
    return float("inf") if seconds is None else seconds


def _wrong(text: str, expected: str) -> InvalidInputError:
    return InvalidInputError(f"{KEEP}: {text!r:.80}, expected {expected}")
