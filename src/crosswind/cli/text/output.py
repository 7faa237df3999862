"""Output of verbs: text for people, one JSON value for machines."""

import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any, TypeVar

T = TypeVar("T")
SIGNS = "+-\u2212"
NARROW_SPACE = "\u202f"  # between thousands; not printable to Python


def say(text: str = "") -> None:
    """One line for people."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def notice(text: str) -> None:
    """One line for people about what goes on, apart from the answer."""
    sys.stderr.write(f"crosswind: {text}\n")
    sys.stderr.flush()


def say_json(value: object) -> None:
    """One JSON value for machines; NaN and infinity become null."""
    say(json.dumps(plain(value), allow_nan=False, ensure_ascii=False))


def say_answer(answer: T, text: Callable[[T], str], *, as_json: bool) -> None:
    """Print an answer as text for people, or as one JSON value for machines."""
    if as_json:
        say_json(answer)
    else:
        say(text(answer))


def plain(value: Any) -> Any:
    """The value in JSON's own types."""
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, str | int | bool) or value is None:
        return value
    return str(value)


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns under headings, padded; numbers right, words left; control characters become question marks."""
    rows = [tuple(printable(cell) for cell in row) for row in rows]
    widths = [max(len(cell) for cell in column) for column in zip(headings, *rows, strict=True)]
    lines = [headings, *rows]
    return "\n".join(
        "  ".join(_padded(cell, width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def printable(text: str) -> str:
    """Return the text with question marks for characters that control a terminal."""
    return "".join(letter if letter.isprintable() or letter == NARROW_SPACE else "?" for letter in text)


def _padded(cell: str, width: int) -> str:
    is_number = cell[:1].isdigit() or (cell[:1] in SIGNS and cell[1:2].isdigit())
    return cell.rjust(width) if is_number else cell.ljust(width)


def colour(text: str, code: str) -> str:
    """The text in an ANSI colour on a terminal that wants it (NO_COLOR is respected)."""
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    return f"\x1b[{code}m{text}\x1b[0m"
