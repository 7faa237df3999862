"""Numbers as arguments of a verb; impossible ones are refused at once."""

import argparse
import math


def above_zero(text: str) -> float:
    """A finite number above 0. Raises: ArgumentTypeError."""
    return _kept(text, _finite(text), is_kept=_finite(text) > 0, expected="a finite number above 0")


def zero_or_more(text: str) -> float:
    """A finite number from 0 on. Raises: ArgumentTypeError."""
    return _kept(text, _finite(text), is_kept=_finite(text) >= 0, expected="a finite number, 0 or more")


def whole(text: str) -> int:
    """A whole number from 1 on. Raises: ArgumentTypeError."""
    is_whole = text.isascii() and text.isdigit() and len(text) < 19
    return int(_kept(text, int(text) if is_whole else 0, is_kept=is_whole and int(text) > 0, expected="1 or more"))


def _finite(text: str) -> float:
    """Return the number, or NaN if it is none or not finite."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def _kept(text: str, value: float, *, is_kept: bool, expected: str) -> float:
    if not is_kept:
        raise argparse.ArgumentTypeError(f"{text[:40]!r}, expected {expected}")
    return value
