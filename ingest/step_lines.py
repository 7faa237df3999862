"""Lines of a program's output that tell of its steps: which they are, and what they say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite

from crosswind.data.errors import InvalidInputError

NUMBER = r"[-+]?[\d.]+(?:[eE][-+]?\d+)?|nan|inf"
MAX_LINE = 4096  # of a longer line the beginning is looked at
MAX_PATTERN = 4096
MAX_NAME = 100
MEANINGS = ("step", "total", "rank", "seconds", "ms")  # every other group is a value of the step


@dataclass(frozen=True)
class LinePattern:
    """What a step line looks like; where `per_epoch`, its numbers begin anew with every pass over the data."""

    expression: str
    per_epoch: bool = False


# Source: Megatron-LM megatron/training/training.py, training_log; DeepSpeed deepspeed/utils/timer.py, ThroughputTimer;
# Lightning's TQDMProgressBar; tqdm's bar_format "{l_bar}{bar}{r_bar}".
KNOWN: Mapping[str, LinePattern] = {
    "megatron": LinePattern(
        r"iteration +(?P<step>\d+)/ *\d+ \|.*?elapsed time per iteration \(ms\): (?P<ms>[\d.]+)"
        rf"(?:.*?lm loss: (?P<loss>{NUMBER}))?"
    ),
    "deepspeed": LinePattern(
        rf"global_step=(?P<step>\d+), RunningAvgSamplesPerSec=.*?CurrSamplesPerSec=(?P<samples_per_second>{NUMBER})"
    ),
    "lightning": LinePattern(
        r"Epoch +\d+: .*\| (?P<step>\d+)/\S+ \["
        rf"[^\]]*?(?:(?:[ ,]|train[_/])loss(?:_step)?=(?P<loss>{NUMBER})[^\]]*)?\]",
        per_epoch=True,
    ),
    "tqdm": LinePattern(r"\d+%\|.*\| (?P<step>\d+)/(?P<total>\d+) \[[\d:]+<", per_epoch=True),
}


@dataclass(frozen=True)
class Told:
    """What one line says; `seconds` is the duration of a step, None where it does not say.

    `total` tells a progress bar from another one that is drawn within it.
    """

    step: int | None
    rank: int
    seconds: float | None
    values: Mapping[str, float | None]
    total: int | None = None


@dataclass(frozen=True)
class TimedStep:
    """A step that ended at `ts_ns`, with how long it took."""

    ts_ns: int
    rank: int
    number: int
    seconds: float | None
    values: Mapping[str, float | None]


@dataclass
class _Count:
    told: int = -1
    base: int = 0  # of the epochs before
    ts_ns: int = 0
    total: int | None = None  # of the bar that is drawn now

    def is_of_another_bar(self, number: int, total: int | None) -> bool:
        """Whether this belongs to a bar within the one that is drawn, or draws an ended one once more."""
        if total is None:
            return False
        if self.total is None:
            self.total = total if number < total else None
            return self.total is None
        if self.total == total and number >= total:
            self.total = None
            return False
        return self.total != total


@dataclass
class StepCounter:
    """Numbers the steps that lines tell of, and times those of which no duration is told."""

    per_epoch: bool
    _counts: dict[int, _Count] = field(default_factory=dict)

    def take(self, told: Told, ts_ns: int) -> TimedStep | None:
        """The step of a line that came at `ts_ns`; None for a line that is not the loop's.

        Where lines skip steps, their mean duration is that of each.
        """
        count = self._counts.setdefault(told.rank, _Count())
        number = count.told + 1 if told.step is None else told.step
        if count.is_of_another_bar(number, told.total):
            return None
        if self.per_epoch and number < count.told:
            count.base += count.told
            count.told = 0
        passed = number - count.told
        seconds = told.seconds
        if seconds is None and count.ts_ns and passed > 0:
            seconds = (ts_ns - count.ts_ns) * 1e-9 / passed
        if passed:
            count.told, count.ts_ns = number, ts_ns
        return TimedStep(ts_ns, told.rank, count.base + number, seconds if passed else None, told.values)


def line_pattern(text: str) -> LinePattern:
    """A known pattern by its name, or one of the user's own.

    Raises: InvalidInputError for what is no regular expression, or has no groups that say anything.
    """
    if text in KNOWN:
        return KNOWN[text]
    wanted = f"expected {', '.join(KNOWN)}, or a regular expression with named groups such as step, seconds or ms, loss"
    if len(text) > MAX_PATTERN:
        raise InvalidInputError(f"--step-lines {text!r:.200}: expected at most {MAX_PATTERN} characters")
    try:
        groups = re.compile(text).groupindex
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidInputError(f"--step-lines {text!r:.200}: {error}; {wanted}") from error
    if not groups or any(len(name) > MAX_NAME for name in groups):
        raise InvalidInputError(f"--step-lines {text!r:.200}: {wanted}")
    if "seconds" in groups and "ms" in groups:
        raise InvalidInputError(f"--step-lines {text!r:.200}: seconds and ms say the same; expected one of them")
    return LinePattern(text)


def told_by(match: re.Match[str]) -> Told | None:
    """What a matching line says; None where its step or rank is no number after all."""
    groups = {name: text for name, text in match.groupdict().items() if text is not None}
    try:
        step = int(groups["step"]) if "step" in groups else None
        rank = int(groups.get("rank", "0"))
        total = int(groups["total"]) if "total" in groups else None
    except ValueError:
        return None
    if not (step is None or 0 <= step < 2**53) or not 0 <= rank < 2**31:
        return None
    values = {name: _finite(text) for name, text in groups.items() if name not in MEANINGS}
    return Told(step, rank, _seconds(groups), values, total)


def _seconds(groups: Mapping[str, str]) -> float | None:
    told = _finite(groups.get("seconds", ""))
    if (ms := _finite(groups.get("ms", ""))) is not None:
        told = ms / 1000
    return told if told is not None and 0 <= told < 1e9 else None


def _finite(text: str) -> float | None:
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        number = inf
    return number if isfinite(number) else None
