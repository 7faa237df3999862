"""The objective as a program tells it: in a file, or on its output."""

import json
import math
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError

FILE_BYTES = 64 * 1024 * 1024
LINE_BYTES = 4096  # of a line of output that is looked at, as step lines are
BLOCK_BYTES = 65_536


def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, with at least one group. Raises: InvalidInputError."""
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise InvalidInputError(f"--objective-pattern {pattern[:80]!r}: {error}") from error
    if expression.groups < 1:
        raise InvalidInputError(
            f"--objective-pattern {pattern[:80]!r} has no group, expected one around the number, as in 'loss=(\\S+)'"
        )
    return expression


def outcomes_in(path: Path, objective: str, pattern: re.Pattern[str] | None) -> dict[str, float]:
    """The numbers that a program left in a file, by name; a bare number is the objective.

    A JSON object gives its numbers, several lines of them the last ones; with a pattern, its last match counts.
    Raises: UnavailableError, MalformedError naming the file and what stands there.
    """
    text = _text(path)
    if pattern:
        matched = matched_numbers(pattern, text.splitlines(), objective)
        if not matched:
            raise MalformedError(f"{path}: no line matches {pattern.pattern!r}")
        return matched
    for candidate in (text, *reversed(text.splitlines())):
        if numbers := _numbers(candidate, objective):
            return numbers
    raise MalformedError(f"{path}: {text[:80]!r}, expected a number, or a JSON object of numbers")


def matched_numbers(pattern: re.Pattern[str], lines: list[str], objective: str) -> dict[str, float]:
    """Return what the last lines that match say: named groups by their names, else the first group as the objective."""
    numbers: dict[str, float] = {}
    for line in lines:
        if match := pattern.search(line[:LINE_BYTES]):
            groups = match.groupdict() or {objective: match[1]}
            numbers |= {name: value for name, text in groups.items() if (value := _number(text)) is not None}
    return numbers


@dataclass
class Heard:
    """Numbers that lines of the output have given so far."""

    pattern: re.Pattern[str]
    objective: str
    numbers: dict[str, float] = field(default_factory=dict)

    def line(self, content: bytes) -> None:
        """Looks at one line."""
        text = content[:LINE_BYTES].decode("utf-8", "replace")
        self.numbers |= matched_numbers(self.pattern, [text], self.objective)


@contextmanager
def listening(pattern: re.Pattern[str], objective: str) -> Iterator[Heard]:
    """Hears what this process and those it starts meanwhile write to standard output, which passes on unchanged."""
    heard = Heard(pattern, objective)
    original = os.dup(1)
    reading, writing = os.pipe()
    os.dup2(writing, 1)
    os.close(writing)
    thread = threading.Thread(target=_pass_on, args=(reading, original, heard), name="crosswind-output", daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        os.dup2(original, 1)  # closes the pipe's last end here; the thread reads on until the program's children left
        thread.join(timeout=2.0)


def _pass_on(reading: int, original: int, heard: Heard) -> None:
    rest = b""
    while block := os.read(reading, BLOCK_BYTES):
        _write(original, block)
        *lines, rest = (rest + block).replace(b"\r", b"\n").split(b"\n")
        rest = rest[-BLOCK_BYTES:]
        for line in lines:
            heard.line(line)
    heard.line(rest)


def _write(descriptor: int, block: bytes) -> None:
    """All of it, unless its reader left."""
    try:
        while block:
            block = block[os.write(descriptor, block) :]
    except OSError:
        return


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(FILE_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise UnavailableError(f"--objective-from {path}: {error.strerror}") from error


def _numbers(text: str, objective: str) -> dict[str, float]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if isinstance(value, Mapping):
        return {str(name): float(item) for name, item in value.items() if _is_number(item)}
    return {objective: float(value)} if _is_number(value) else {}


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
