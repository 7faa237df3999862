"""Step lines: patterns of the lines in a program's output that report its steps, and their contents."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, isfinite

from crosswind.data.schema.errors import InvalidInputError

NUMBER = r"[-+]?(?<![\d.])[\d.]{1,40}(?![\d.])(?:[eE][-+]?\d{1,9})?|nan|inf"  # bounds: no line takes long
COLOUR = r"(?:\x1b\[[\d;]*m)"
MAX_LINE = 4096  # only the beginning of a longer line is matched
MAX_PATTERN = 4096
MAX_NAME = 100
MEANINGS = ("step", "done", "total", "rank", "seconds", "ms")  # every other group is a value of the step


@dataclass(frozen=True)
class LinePattern:
    """The form of a step line; if `per_epoch`, its numbers start again with every pass over the data."""

    expression: str
    per_epoch: bool = False


# `done` is the number of steps that are done; the first is step 0, as in the ranks.
# Source: Megatron-LM megatron/training/training.py, training_log; DeepSpeed deepspeed/utils/timer.py, ThroughputTimer;
# Lightning's TQDMProgressBar; Caffe src/caffe/solver.cpp, Step; Keras keras/src/utils/progbar.py; FlexFlow
# src/metrics_functions/metrics_functions.cc, PerfMetrics::print; tqdm's bar_format "{l_bar}{bar}{r_bar}".
KNOWN: Mapping[str, LinePattern] = {
    "megatron": LinePattern(
        r"iteration +(?P<done>\d{1,15})/ *\d{1,15} \|.{0,400}?elapsed time per iteration \(ms\): (?P<ms>[\d.]{1,40})"
        rf"(?:.{{0,1000}}?lm loss: (?P<loss>{NUMBER}))?"
    ),
    "deepspeed": LinePattern(
        r"global_step=(?P<done>\d{1,15}), RunningAvgSamplesPerSec=.{0,60}?"
        rf"CurrSamplesPerSec=(?P<samples_per_second>{NUMBER})"
    ),
    "lightning": LinePattern(
        r"Epoch +\d+: .*\| (?P<done>\d+)/\S+ \["
        rf"[^\]]*?(?:(?:[ ,]|train[_/])loss(?:_step)?=(?P<loss>{NUMBER})[^\]]*)?\]",
        per_epoch=True,
    ),
    "caffe": LinePattern(
        r"Iteration (?P<step>\d{1,15})(?: \([^()]{1,40} iter/s, [^()]{1,40} iters?\))?"
        rf", loss = (?P<loss>{NUMBER})"
    ),
    "flexflow": LinePattern(
        r"\[Metrics\](?: throughput| accuracy| \w{1,60}_crossentropy| \w{1,60}_error): "
        rf"(?:.{{0,400}}?(?:crossentropy|error): (?P<loss>{NUMBER}))?"
    ),
    "keras": LinePattern(
        rf"^{COLOUR}? *(?P<done>\d{{1,12}})/(?P<total>\d{{1,12}}){COLOUR}? {COLOUR}?(?:\[[=>.]*\]|[━]++{COLOUR}?[^ ]* )"
        rf"(?:.* loss: (?P<loss>{NUMBER}))?",
        per_epoch=True,
    ),
    "tqdm": LinePattern(r"\d+%\|.*\| (?P<done>\d+)/(?P<total>\d+) \[[\d:]+<", per_epoch=True),
}


@dataclass(frozen=True)
class StepReport:
    """The contents of one step line; `seconds` is the duration of a step, None if it is not in the line.

    `step` is the last one that ended, -1 if none has; `last` is the last one of a progress bar, which distinguishes it
    from another one that is drawn within it.
    """

    step: int | None
    rank: int
    seconds: float | None
    values: Mapping[str, float | None]
    last: int | None = None


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
    last_number: int = -1
    base: int = 0  # of the epochs before
    ts_ns: int = 0
    last: int | None = None  # of the bar that is drawn now

    def is_of_another_bar(self, number: int, last: int | None) -> bool:
        """Return whether this is of a bar within the one that is drawn, or draws an ended one once more."""
        if last is None:
            return False
        if self.last is None:
            self.last = last if number < last else None
            return self.last is None
        if self.last == last and number >= last:
            self.last = None
            return False
        return self.last != last

    def begin(self, ts_ns: int, *, is_epoch: bool) -> None:
        """Begin an epoch, or the run: the first step is timed from here, however often this is reported."""
        if is_epoch or not self.ts_ns:
            self.ts_ns = ts_ns


@dataclass
class StepCounter:
    """Numbers the steps in step lines, and times those without a duration."""

    per_epoch: bool
    _counts: dict[int, _Count] = field(default_factory=dict)

    def take(self, report: StepReport, ts_ns: int) -> TimedStep | None:
        """Return the step of a line that came at `ts_ns`; None for a line that is not the loop's.

        If lines skip steps, all of them get their mean duration.
        """
        count = self._counts.setdefault(report.rank, _Count())
        number = count.last_number + 1 if report.step is None else report.step
        if count.is_of_another_bar(number, report.last):
            return None
        is_new_epoch = self.per_epoch and number < count.last_number
        if is_new_epoch:
            count.base += count.last_number + 1
            count.last_number = -1
        if number < 0:
            count.begin(ts_ns, is_epoch=is_new_epoch)
            return None
        passed = number - count.last_number
        seconds = report.seconds
        if seconds is None and count.ts_ns and passed > 0:
            seconds = (ts_ns - count.ts_ns) * 1e-9 / passed
        if passed:
            count.last_number, count.ts_ns = number, ts_ns
        return TimedStep(ts_ns, report.rank, count.base + number, seconds if passed else None, report.values)


def line_pattern(text: str) -> LinePattern:
    """Return a predefined pattern by its name, or one of the user's own.

    Raises: InvalidInputError for text that is no regular expression, or has no groups for steps or values.
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
    for one, other in (("seconds", "ms"), ("step", "done")):
        if one in groups and other in groups:
            raise InvalidInputError(f"--step-lines {text!r:.200}: {one} and {other} say the same; expected one of them")
    return LinePattern(text)


def step_report(match: re.Match[str]) -> StepReport | None:
    """Return the contents of a matching line; None if its step or rank is no number after all."""
    groups = {name: text for name, text in match.groupdict().items() if text is not None}
    try:
        numbers = {name: int(groups[name]) for name in ("step", "done", "total") if name in groups}
        rank = int(groups.get("rank", "0"))
    except ValueError:
        return None
    if not all(0 <= number < 2**53 for number in numbers.values()) or not 0 <= rank < 2**31:
        return None
    first = 1 if "done" in numbers else 0
    step, last = _less(numbers.get("done", numbers.get("step")), first), _less(numbers.get("total"), first)
    values = {name: _finite(text) for name, text in groups.items() if name not in MEANINGS}
    return StepReport(step, rank, _seconds(groups), values, last)


def _less(number: int | None, first: int) -> int | None:
    return None if number is None else number - first


def _seconds(groups: Mapping[str, str]) -> float | None:
    seconds = _finite(groups.get("seconds", ""))
    if (ms := _finite(groups.get("ms", ""))) is not None:
        seconds = ms / 1000
    return seconds if seconds is not None and 0 <= seconds < 1e9 else None


def _finite(text: str) -> float | None:
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        number = inf
    return number if isfinite(number) else None
