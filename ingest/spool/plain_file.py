"""Opening files in folders that others may write to: links are not followed, pipes do not block."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from crosswind.data.schema.errors import UnavailableError

NOT_PLAIN: Final = (errno.ELOOP, errno.ENXIO)  # a link; a socket


class NotPlainError(UnavailableError):
    """There is a link, pipe, socket, device or folder in place of a file."""


def open_plain(path: Path) -> BinaryIO:
    """Open a file. Raises: OSError; NotPlainError for everything but plain files."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in NOT_PLAIN:
            raise _not_plain(path) from error
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise _not_plain(path)
    return os.fdopen(fd, "rb")


def _not_plain(path: Path) -> NotPlainError:
    return NotPlainError(f"{path}: expected a plain file, found a link, pipe, socket, device or folder")
