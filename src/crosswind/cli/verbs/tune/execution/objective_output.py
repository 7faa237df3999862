"""The objective as a program tells it: in a file, or on its output."""

import json
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
    Numbers may be nan or infinite. Raises: UnavailableError, MalformedError naming the file and what stands there.
    """
    text = _text(path)
    if pattern:
        matched = Matches(pattern, objective)
        for line in text.splitlines():
            matched.look_at(line)
        if fault := matched.fault(str(path)):
            raise MalformedError(fault)
        return matched.numbers
    for candidate in (text, *reversed(text.splitlines())):
        if numbers := _numbers(candidate, objective):
            return numbers
    raise MalformedError(f"{path}: {text[:80]!r}, expected a number, or a JSON object of numbers")


@dataclass
class Matches:
    """Numbers that lines have given so far: named groups by their names, else the first group as the objective.

    The last match counts, also where it is nan; a match that is no number at all is passed over.
    """

    pattern: re.Pattern[str]
    objective: str
    numbers: dict[str, float] = field(default_factory=dict)
    no_number: str | None = None  # the last match that was none

    def look_at(self, line: str) -> None:
        """Takes what one line gives."""
        if match := self.pattern.search(line[:LINE_BYTES]):
            for name, text in (match.groupdict() or {self.objective: match[1]}).items():
                self._take(name, text or "")

    def _take(self, name: str, text: str) -> None:
        try:
            self.numbers[name] = float(text)
        except ValueError:
            self.no_number = text

    def fault(self, place: str) -> str:
        """Return why the lines of this place do not give the objective, and what to do; empty where they do.

        An expression may be computed of whatever was matched.
        """
        named = tuple(self.pattern.groupindex)
        if self.objective in self.numbers or (named and not self.objective.isidentifier()):
            return ""
        words = f"--objective-pattern {self.pattern.pattern!r}"
        if named and self.objective not in named:
            return f"{words} has the groups {', '.join(named)}, expected one (?P<{self.objective}>...)"
        if self.no_number is not None:
            return f"{place}: {words} matches {self.no_number[:80]!r}, which is no number: narrow its group"
        return f"{place}: no line matches {words}"


@contextmanager
def listening(pattern: re.Pattern[str], objective: str) -> Iterator[Matches]:
    """Hears what this process and those it starts meanwhile write to standard output, which passes on unchanged."""
    heard = Matches(pattern, objective)
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


def _pass_on(reading: int, original: int, heard: Matches) -> None:
    rest = b""
    while block := os.read(reading, BLOCK_BYTES):
        _write(original, block)
        *lines, rest = (rest + block).replace(b"\r", b"\n").split(b"\n")
        rest = rest[-BLOCK_BYTES:]
        for line in lines:
            heard.look_at(_decoded(line))
    heard.look_at(_decoded(rest))


def _decoded(line: bytes) -> str:
    return line[:LINE_BYTES].decode("utf-8", "replace")


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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
