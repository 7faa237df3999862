"""Reading the kernel's text files: bounded, exact, with errors that name the file, the value and the expectation."""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from crosswind.data.errors import MalformedError, UnavailableError

MAX_FILE_BYTES = 4 * 1024 * 1024  # /proc/stat of the largest nodes has a few hundred kilobytes
CHUNK_BYTES = 64 * 1024
BEYOND: Final = 10**20  # one more digit than any number of 64 bits has


def read_file(path: str) -> bytes:
    """The whole content of a kernel file.

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
    """What was read of a file, to its end: one read of a kernel file may return a part of it.

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
    """A whole number that is not negative.

    Raises: MalformedError naming the file and what stands there instead.
    """
    if field is None or not field.isdigit() or len(field) > 20:
        raise MalformedError(f"{path}: expected a whole number, found {field!r:.80}")
    return int(field)


def counts(fields: Sequence[bytes], path: str) -> list[int]:
    """Whole numbers that are not negative. Raises: as `count`."""
    if b"".join(fields).isdigit():
        with suppress(ValueError):  # an empty one, or one of thousands of digits
            numbers = list(map(int, fields))
            if max(numbers) < BEYOND:
                return numbers
    return [count(field, path) for field in fields]


def behind(content: bytes, words: Sequence[bytes], path: str) -> list[int | None]:
    """The whole numbers of lines of `name: number [kB]`; each word is a line's end, a name and a colon.

    Raises: MalformedError naming the file, also when none of the words stands there.
    """
    found: list[int | None] = []
    text = b"\n" + content
    for word in words:
        start = text.find(word)
        if start < 0:
            found.append(None)
            continue
        start += len(word)
        found.append(count(text[start : text.find(b"\n", start)].removesuffix(b" kB").strip(), path))
    if not any(value is not None for value in found):
        raise MalformedError(f"{path}: expected lines of {b', '.join(words)!r}, found {content!r:.80}")
    return found


def start_ticks(pid: int, proc: str = "/proc") -> int:
    """When a living process started, in clock ticks since boot, which tells it from a later one of the same pid.

    Raises: UnavailableError when it is gone or only waits to be reaped.
    """
    path = f"{proc}/{pid}/stat"
    return started_ticks(read_file(path), path)


def started_ticks(content: bytes, path: str) -> int:
    """The same from what /proc/<pid>/stat says. Raises: as `start_ticks`."""
    fields = stat_fields(content, path)
    if fields[0] in b"ZX":
        raise UnavailableError(f"{path}: the process has ended")
    return count(fields[19], path)


def stat_fields(content: bytes, path: str) -> list[bytes]:
    """The fields of /proc/<pid>/stat from the third (state) on; the second may hold blanks and parentheses.

    Raises: MalformedError when there are fewer than any kernel writes.
    """
    fields = content.rpartition(b")")[2].split()
    if len(fields) < 22:
        raise MalformedError(f"{path}: expected 24 fields or more, found {content!r:.80}")
    return fields
