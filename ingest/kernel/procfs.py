"""Reading the kernel's text files: bounded, exact, with errors that name file, value and expectation."""

import os
import re
from collections.abc import Iterable, Sequence
from typing import Final

from crosswind.data.schema.errors import MalformedError, UnavailableError

STAT_FIELDS: Final = 22  # that every kernel writes, from the state on; the rest is left in one piece
MAX_FILE_BYTES = 4 * 1024 * 1024  # /proc/stat of the largest nodes has a few hundred kilobytes
CHUNK_BYTES = 64 * 1024
MOST_DIGITS: Final = 4000  # Python refuses to make an integer of more
BEYOND: Final = 10**20  # one digit more than any number of 64 bits has


def read_file(path: str) -> bytes:
    """Return the whole content of a kernel file.

    Raises: UnavailableError when it is missing or refused; MalformedError when it is longer than any kernel's.
    """
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
    try:
        return rest_of(fd, os.pread(fd, CHUNK_BYTES, 0), path)
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror}") from error
    finally:
        os.close(fd)


def rest_of(fd: int, content: bytes, path: str) -> bytes:
    """Return a file's content to its end: one read of a kernel file may return a part of it.

    Raises: MalformedError when it is longer than any kernel's; OSError.
    """
    chunk = content
    while chunk:
        if len(content) > MAX_FILE_BYTES:
            raise MalformedError(f"{path}: expected at most {MAX_FILE_BYTES} bytes")
        chunk = os.pread(fd, CHUNK_BYTES, len(content))
        content += chunk
    return content


def count(field: bytes | None, path: str) -> int:
    """Return a whole number that is not negative.

    Raises: MalformedError naming the file and the text found instead.
    """
    if field is None or not field.isdigit() or len(field) > 20:
        raise MalformedError(f"{path}: expected a whole number, found {field!r:.80}")
    return int(field)


def counts(fields: Sequence[bytes], path: str) -> list[int]:
    """Return several such numbers, of which none is empty. Raises: as `count`."""
    digits = b"".join(fields)
    if digits.isdigit() and len(digits) < MOST_DIGITS:
        numbers = list(map(int, fields))
        if max(numbers) < BEYOND:
            return numbers
    return [count(field, path) for field in fields]


class NamedLines:
    """Whole numbers in lines of `name: number [kB]`, in this order, among others."""

    def __init__(self, names: Iterable[bytes]) -> None:
        self._words = tuple(b"\n%b:" % name for name in names)
        lines = (rb"%b\s+(\d{1,20})(?: kB)?(?=\n)" % re.escape(word) for word in self._words)
        self._all = re.compile(b"(?s:.*)".join(lines))  # finds them in a third of the time

    def __len__(self) -> int:
        return len(self._words)

    def read(self, content: bytes, path: str) -> Sequence[int | None]:
        """Return the number of each name, None for names that the file does not have.

        Raises: MalformedError naming the file, also when it has none of the names.
        """
        text = b"\n" + content
        if (match := self._all.search(text)) is not None:
            return list(map(int, match.groups()))
        numbers = [self._behind(text, word, path) for word in self._words]
        if not any(number is not None for number in numbers):
            raise MalformedError(f"{path}: expected lines of {b','.join(self._words)!r}, found {content!r:.80}")
        return numbers

    @staticmethod
    def _behind(text: bytes, word: bytes, path: str) -> int | None:
        start = text.find(word)
        if start < 0:
            return None
        start += len(word)
        return count(text[start : text.find(b"\n", start)].removesuffix(b" kB").strip(), path)


def start_ticks(pid: int, proc: str = "/proc") -> int:
    """Return the start of a living process in clock ticks since boot; this distinguishes it from later ones of its pid.

    Raises: UnavailableError when it is gone or only waits to be reaped.
    """
    path = f"{proc}/{pid}/stat"
    return started_ticks(read_file(path), path)


def started_ticks(content: bytes, path: str) -> int:
    """Return the same from the content of /proc/<pid>/stat. Raises: as `start_ticks`."""
    fields = stat_fields(content, path)
    if fields[0] in b"ZX":
        raise UnavailableError(f"{path}: the process has ended")
    return count(fields[19], path)


def stat_fields(content: bytes, path: str) -> list[bytes]:
    """Return the first fields of /proc/<pid>/stat from the third (state) on; the second may hold blanks and brackets.

    Raises: MalformedError when there are fewer than any kernel writes.
    """
    fields = content.rpartition(b")")[2].split(None, STAT_FIELDS)
    if len(fields) < STAT_FIELDS:
        raise MalformedError(f"{path}: expected 24 fields or more, found {content!r:.80}")
    return fields
