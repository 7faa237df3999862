"""The kernel's files, kept open: every further read costs one `pread`."""

import os
import resource
import weakref
from contextlib import suppress
from typing import Final

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.kernel.fd_limits import OUT_OF_FILES
from crosswind.ingest.kernel.procfs import rest_of

PAGE_BYTES: Final = 4096  # the first guess: a larger buffer costs more than the read of a small file
WHOLE_BYTES: Final = 2048  # a shorter answer is complete: the kernel fills a page, except for a record's length
KEPT: Final = 4096  # descriptors at most, and at most this share of what the process may open
FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
KEPT_SHARE: Final = 8


class OutOfFilesError(UnavailableError):
    """No file at all could be opened: this one may exist."""


def share_of_descriptors(part: int) -> int:
    """Return a fraction of the number of files that this process may have open."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return (KEPT * KEPT_SHARE if limit == resource.RLIM_INFINITY else limit) // part


def unavailable(path: str, error: OSError) -> UnavailableError:
    """Return the error for a refused path: it is missing or hidden, or no file can be opened at all."""
    kind = OutOfFilesError if error.errno in OUT_OF_FILES else UnavailableError
    return kind(f"{path}: {error.strerror}")


class KernelFiles:
    """Descriptors of kernel files by path.

    Kept are files whose size is not that of their content: the kernel generates it for every read from the start. They
    remain those of their device when another takes its name, until `forget`. Others, such as recorded trees, are
    opened every time, so that a replaced file is noticed.
    Not for several threads at once.
    """

    def __init__(self, kept: int | None = None) -> None:
        self._fds: dict[str, int] = {}
        self._sizes: dict[str, int] = {}  # of the buffers for files that are larger than a page
        self._limit = min(KEPT, share_of_descriptors(KEPT_SHARE)) if kept is None else kept
        weakref.finalize(self, _close, self._fds)

    def read(self, path: str) -> bytes:
        """Return the whole content.

        Raises: UnavailableError when it is missing or refused, as OutOfFilesError when no file can be opened at all;
        MalformedError when it is longer than any kernel's.
        """
        fd = self._fds.get(path)
        if fd is None:
            return self._open(path)
        try:
            content = os.pread(fd, self._sizes.get(path, PAGE_BYTES), 0)
            return content if 0 < len(content) < WHOLE_BYTES else self._whole(fd, content, path)
        except OSError:  # its device is gone; another may have that name
            self._forget(path)
            return self._open(path)

    def is_readable(self, path: str) -> bool:
        """Return whether the kernel shows this file to this user, with something in it."""
        try:
            return bool(self.read(path))
        except (UnavailableError, MalformedError):
            return False

    def close(self) -> None:
        """Close every descriptor; the next read opens the file again."""
        _close(self._fds)

    def forget(self, folder: str) -> None:
        """Close the files below a folder, such as that of a process that has ended."""
        for path in [path for path in self._fds if path.startswith(f"{folder}/")]:
            self._forget(path)

    def forget_file(self, path: str) -> None:
        """Close one file, if it is kept."""
        if path in self._fds:
            self._forget(path)

    def _open(self, path: str) -> bytes:
        fd = -1
        try:
            fd = self._descriptor(path)
            content = self._whole(fd, os.pread(fd, PAGE_BYTES, 0), path)
            if os.fstat(fd).st_size != len(content) and len(self._fds) < self._limit:
                self._fds[path], fd = fd, -1
            return content
        except OSError as error:
            raise unavailable(path, error) from error
        finally:
            if fd >= 0:
                os.close(fd)

    def _descriptor(self, path: str) -> int:
        """Open the file; if there are too many open ones, close the kept ones."""
        try:
            return os.open(path, FLAGS)
        except OSError as error:
            if error.errno not in OUT_OF_FILES or not self._fds:
                raise
        self.close()
        return os.open(path, FLAGS)

    def _whole(self, fd: int, content: bytes, path: str) -> bytes:
        content = rest_of(fd, content, path)
        if path in self._fds and len(content) >= self._sizes.get(path, PAGE_BYTES):
            self._sizes[path] = 2 * len(content)
        return content

    def _forget(self, path: str) -> None:
        self._sizes.pop(path, None)
        with suppress(OSError):
            os.close(self._fds.pop(path))


def _close(fds: dict[str, int]) -> None:
    while fds:
        _, fd = fds.popitem()
        with suppress(OSError):
            os.close(fd)
