"""Numbers as people read them: three significant digits, SI units, an estimate with its interval."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from crosswind.data.schema.answers.explanations import UNKNOWN, Explanation
from crosswind.data.schema.metric import Scalar
from crosswind.data.schema.words import UNITS, phase_words, words
from crosswind.data.schema.words import percent as finite_percent

NONE = "\u2013"  # shown where a value is missing; never a zero
MINUS = "\u2212"
SMALLEST = 1e-4  # below it a number is written with an exponent
NEGLIGIBLE = 1e-3  # of an interval's largest part: less is shown as 0
SUREST = 0.99  # above which only draws without end would tell certainties apart
NOTHING_SECONDS = 1e-10  # what sums of times leave of zero
MINUTE, HOUR = 60, 3600
HEADLINE = 140  # characters of two lines at 1280 pixels
BETWEEN = re.compile(r"(?<=[.])\s+(?=[A-Z])")  # sentences
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
LONG_UNITS = ((HOUR, "h"), (MINUTE, "min"), (1.0, "s"))


def number(value: float | None) -> str:
    """Three significant digits; whole numbers keep all of theirs."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == 0 or isinstance(value, int):
        return _grouped(f"{value:,.0f}")
    if abs(value) < SMALLEST:
        return _grouped(f"{value:.2e}")
    digits = max(0, 2 - math.floor(math.log10(abs(float(f"{value:.2e}")))))
    return _grouped(f"{value:,.{digits}f}")


def _grouped(digits: str) -> str:
    return digits.replace("-", MINUS).replace(",", "\u202f")


def seconds(value: float | None) -> str:
    """A time of up to minutes in the unit that suits it: `412 ms`, `41.2 s`, `3 min 12 s`, `3 h 12 min`."""
    if value is None or not math.isfinite(value):
        return NONE
    if abs(value) < NOTHING_SECONDS:
        return "0 s"
    if abs(value) >= 2 * MINUTE:
        return _long(value)
    scale, unit = unit_of(value)
    return f"{number(value / scale)} {unit}"


def _long(value: float) -> str:
    sign, whole = (MINUS if value < 0 else ""), round(abs(value))
    if whole < HOUR:
        return f"{sign}{whole // MINUTE} min {whole % MINUTE} s"
    minutes = round(whole / MINUTE)
    return f"{sign}{minutes // 60} h {minutes % 60} min"


def unit_of(*values: float | None) -> tuple[float, str]:
    """The unit of time, as (seconds, name), in which the largest of the values has at least one whole digit."""
    largest = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)
    if largest == 0:
        return UNITS[0]
    return next((unit for unit in UNITS if largest >= unit[0] * 0.9995), UNITS[-1])


def axis_unit(*values: float | None) -> tuple[float, str]:
    """Like `unit_of`, with minutes and hours for long times."""
    largest = max((abs(value) for value in values if value is not None and math.isfinite(value)), default=0.0)
    return next((unit for unit in LONG_UNITS if largest >= 3 * unit[0]), unit_of(largest))


def estimate(value: float | None, low: float | None, high: float | None) -> str:
    """A signed time with its interval, all in one unit: `+18.2 s [16.0 to 20.1]`."""
    if value is None or low is None or high is None:
        return NONE
    scale, unit = axis_unit(value, low, high)
    negligible = NEGLIGIBLE * max(abs(value), abs(low), abs(high))
    shown = [0.0 if abs(part) <= negligible else part / scale for part in (value, low, high)]
    sign = "+" if value > 0 else ""
    return f"{sign}{number(shown[0])} {unit} [{number(shown[1])} to {number(shown[2])}]"


def percent(ratio: float | None) -> str:
    """A ratio as percent: `92 %`, `4.3 %`, `0.12 %`."""
    if ratio is None or not math.isfinite(ratio):
        return NONE
    return finite_percent(ratio)


def cause_words(explanation: Explanation) -> str:
    """The cause of a run; an unknown one with its place: `unknown, on rank 1, in compute`."""
    if explanation.cause != UNKNOWN:
        return NONE if explanation.cause is None else words(explanation.cause)
    rank = "" if explanation.culprit_rank is None else f", on rank {explanation.culprit_rank}"
    return f"{UNKNOWN}{rank}, in {phase_words(explanation.phase or NONE)}"


def certainty(ratio: float | None) -> str:
    """A share of redrawn evidence as percent, rounded down: another draw may always differ."""
    if ratio is None or not math.isfinite(ratio):
        return NONE
    return "over 99 %" if ratio > SUREST else f"{math.floor(100 * ratio)} %"


def times(ratio: float | None) -> str:
    """Return a ratio in words, as times as long: `1.42x`."""
    return NONE if ratio is None or not math.isfinite(ratio) else f"{number(ratio)}x"


def spread(value: float | None, low: float | None, high: float | None) -> str:
    """A ratio with its interval: `1.17x [1.12 to 1.22]`."""
    return NONE if value is None else f"{times(value)} [{number(low)} to {number(high)}]"


def signed(value: float | None) -> str:
    """A number with its sign: `+0.62`."""
    digits = number(value)
    return f"+{digits}" if value is not None and value > 0 else digits


def quantity(value: float | None, unit: str) -> str:
    """A value of a check in a unit that suits it: `53.2 MB/s`, `1.50 Tflop/s`, `34.4 \u00b5s`, `1.02`."""
    if value is None or not math.isfinite(value):
        return NONE
    if unit == "seconds":
        return seconds(value)
    if unit == "ratio" or not unit:
        return number(value)
    scale, prefix = next((pair for pair in PREFIXES if abs(value) >= pair[0]), (1.0, ""))
    return f"{number(value / scale)} {prefix}{unit.replace('bytes', 'B')}"


def count(amount: int, noun: str) -> str:
    """An amount and its noun: `1 run`, `12 runs`."""
    return f"{amount} {noun}" if amount == 1 else f"{amount:,} {noun}s".replace(",", "\u202f")


def utc(ns: int | None) -> str:
    """A time stamp in UTC to the second: `2026-11-20 19:27:03 UTC`."""
    return NONE if ns is None else f"{moment(ns):%Y-%m-%d %H:%M:%S} UTC"


def headline(text: str) -> tuple[str, str]:
    """The sentences that fit into two lines of a heading, at least the first, and the rest."""
    sentences = BETWEEN.split(text)
    fitting = next((size for size in range(len(sentences), 1, -1) if len(" ".join(sentences[:size])) <= HEADLINE), 1)
    return " ".join(sentences[:fitting]), " ".join(sentences[fitting:])


def iso(ns: int | None) -> str:
    """A time stamp as ISO 8601, for machines; empty when unknown."""
    return "" if ns is None else f"{moment(ns):%Y-%m-%dT%H:%M:%S.%f}Z"


def moment(ns: int) -> datetime:
    """A time stamp as plotly and people take it: microseconds, within the years that have names."""
    return datetime.fromtimestamp(min(max(ns / 1e9, 0), 253_402_300_799), tz=UTC)  # year 9999, where datetime ends


def scalar(value: Scalar) -> str:
    """A parameter's value as it would be written on a command line."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def short_configuration(configuration: Mapping[str, Scalar], varying: frozenset[str]) -> str:
    """The first two parameters that differ between the runs shown, or else the first: `batch=8 threads=2 +3`."""
    names = sorted(set(configuration) & varying)[:2] or sorted(configuration)[:1]
    shown = [f"{name}={_short(configuration[name])}" for name in names]
    rest = len(configuration) - len(names)
    return " ".join([*shown, f"+{rest}"] if rest else shown) or NONE


def configuration_words(configuration: Mapping[str, Scalar]) -> str:
    """A whole configuration on one line: `batch=16 bucket_mb=1.35`."""
    return " ".join(f"{name}={_short(value)}" for name, value in configuration.items())


def _short(value: Scalar) -> str:
    return f"{value:.3g}" if isinstance(value, float) else scalar(value)


def size(amount: int) -> str:
    """Return a number of bytes in the largest unit that is not more than it: `1.5 GiB`."""
    power = max(0, min(4, (amount.bit_length() - 1) // 10))
    return f"{amount / 1024**power:.4g} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"
