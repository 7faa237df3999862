"""Following a text file that others write: every complete line once, through rotation and truncation."""

import os
from collections.abc import Iterator

from crosswind.data.schema.errors import UnavailableError

MAX_BYTES = 4 * 1024 * 1024  # of one look; the rest is taken by the next
MAX_LINE = 64 * 1024
MARK_BYTES = 64  # before the present place, by which a rewritten file is recognised


class Tail:
    """A reader of new lines in one file.

    The content at the first look is skipped, unless `from_start`. With `has_header` the first line is kept apart.
    """

    def __init__(self, path: str, *, from_start: bool, has_header: bool) -> None:
        self.path = path
        self.header: bytes | None = None
        self.long_lines = 0  # that were skipped
        self._from_start = from_start
        self._has_header = has_header
        self._fd = -1
        self._offset = 0
        self._mark = b""
        self._is_inside_long_line = False

    @property
    def identity(self) -> tuple[int, int] | None:
        """Return the file's device and inode, which survive renaming; None if none is open."""
        if self._fd < 0:
            return None
        status = os.fstat(self._fd)
        return status.st_dev, status.st_ino

    def lines(self) -> list[bytes]:
        """Return the lines that were completed since the last look. Raises: UnavailableError when there is no file."""
        try:
            if self._fd < 0:
                self._open()
            return self._new_lines()
        except OSError as error:
            self.close()
            raise UnavailableError(f"{self.path}: {error.strerror}") from error

    def close(self) -> None:
        """Close the file; the next look begins with the file of that time."""
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _new_lines(self) -> list[bytes]:
        if os.fstat(self._fd).st_size < self._offset or not self._is_where_it_was():
            self._begin(0)
        lines = self._read()
        if self._was_replaced() and self._is_at_end():
            lines += self._last_line()
            self.close()
            self._open()
            lines += self._read()
        return lines

    def _open(self) -> None:
        self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        self._begin(0)
        if not self._from_start:
            self._begin(max(self._offset, self._last_end()))
        self._from_start = True

    def _begin(self, offset: int) -> None:
        self._is_inside_long_line = False
        if self._has_header and offset == 0:
            first, end, _ = os.pread(self._fd, MAX_LINE, 0).partition(b"\n")
            self.header = first if end else None
            offset = len(first) + 1 if end else 0
        self._go_to(offset)

    def _go_to(self, offset: int) -> None:
        self._offset = offset
        start = max(0, offset - MARK_BYTES)
        self._mark = os.pread(self._fd, offset - start, start)

    def _is_where_it_was(self) -> bool:
        return os.pread(self._fd, len(self._mark), self._offset - len(self._mark)) == self._mark

    def _last_end(self) -> int:
        """Return the place after the last complete line."""
        size = os.fstat(self._fd).st_size
        start = max(0, size - MAX_LINE)
        return start + os.pread(self._fd, MAX_LINE, start).rfind(b"\n") + 1

    def _read(self) -> list[bytes]:
        if self._has_header and self.header is None:
            self._begin(0)
            if self.header is None:
                return []
        content = os.pread(self._fd, MAX_BYTES, self._offset)
        end = content.rfind(b"\n") + 1
        if not end and len(content) > MAX_LINE:
            self.long_lines += not self._is_inside_long_line
            self._is_inside_long_line = True
            self._go_to(self._offset + len(content))
            return []
        self._go_to(self._offset + end)
        lines = content[:end].split(b"\n")[:-1]
        if lines and self._is_inside_long_line:
            self._is_inside_long_line = False
            del lines[0]
        return list(self._short(lines))

    def _short(self, lines: list[bytes]) -> Iterator[bytes]:
        for line in lines:
            if len(line) <= MAX_LINE:
                yield line
            else:
                self.long_lines += 1

    def _was_replaced(self) -> bool:
        try:
            status = os.stat(self.path)  # noqa: PTH116 - called at every look
        except FileNotFoundError:
            if os.fstat(self._fd).st_nlink == 0:
                raise
            return False  # moved away, and not replaced yet
        return (status.st_dev, status.st_ino) != self.identity

    def _is_at_end(self) -> bool:
        return os.fstat(self._fd).st_size - self._offset <= MAX_LINE

    def _last_line(self) -> list[bytes]:
        """Return the text after the last line end of a file that nobody writes any more."""
        rest = os.pread(self._fd, MAX_LINE, self._offset)
        return [rest] if rest and not self._is_inside_long_line else []
