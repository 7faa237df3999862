"""Files that appear whole or not at all, under a name that only one writer can get, on NFS and Lustre too.

A draft under a name of its own is written, brought to disk and then linked to the name in question: link(2) is atomic
on the server and fails where the name is taken. O_EXCL would be as exclusive on today's NFS, but the file would appear
empty first, and for good where its writer is killed. When the answer to a link got lost and the client sends it again,
it looks as if somebody else had the name; the draft's count of links tells the truth.
Source: open(2), the part on O_EXCL and NFS; RFC 1813, section 3.3.15 (LINK).
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.run import new_ulid

DRAFT_SUFFIX = ".draft"


@contextmanager
def reaching(path: Path) -> Iterator[None]:
    """Turn refusals of the operating system, such as a full disk, into UnavailableError with the path."""
    try:
        yield
    except OSError as error:
        raise UnavailableError(f"{path}: {error.strerror or error}") from error


def new_file(path: Path) -> int:
    """Return a descriptor that writes to a file which was not there before."""
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that was not there before and bring it to disk. Raises: OSError."""
    with os.fdopen(new_file(path), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def appear(path: Path, content: bytes, *, stamp: Callable[[Path], None]) -> bool:
    """Make the file with this content unless the name is taken; return whether it was made.

    `stamp` sets the modification time of the draft. After a kill or on a full disk there is the whole file or none.
    Raises: UnavailableError.
    """
    draft = path.parent / f".{new_ulid()}{DRAFT_SUFFIX}"  # in the same folder: BeeGFS links nowhere else
    with reaching(path):
        try:
            write_new(draft, content)
            stamp(draft)
            return _link(draft, path)
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


def replace_file(path: Path, content: bytes) -> None:
    """Make the file with this content, in place of the one before; there is always a whole one.

    Raises: UnavailableError.
    """
    draft = path.parent / f".{new_ulid()}{DRAFT_SUFFIX}"
    with reaching(path):
        try:
            write_new(draft, content)
            draft.replace(path)
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


def content_of(path: Path) -> tuple[bytes, int] | None:
    """Return the content and the modification time in nanoseconds; None where there is no such file.

    It is opened and not only looked at: an NFS client asks the server for a file's times at every open, and otherwise
    caches them for up to a minute. Source: nfs(5), close-to-open cache consistency. Raises: UnavailableError.
    """
    with reaching(path):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            return file.read(), os.fstat(descriptor).st_mtime_ns


def sync_folder(folder: Path) -> None:
    """Bring the names in the folder to disk, where the file system can."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _link(draft: Path, path: Path) -> bool:
    try:
        os.link(draft, path)
    except FileExistsError:
        if draft.stat().st_nlink < 2:  # its own name alone
            return False
    sync_folder(path.parent)
    return True
