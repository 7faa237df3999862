"""The one clock that all nodes of a shared folder agree on: the file system's own.

Nodes' clocks differ by minutes where nobody sets them; a lease must not depend on them. `utime` without a time asks for
"now" where the file is: NFS clients send SET_TO_SERVER_TIME, and the server fills in its own time.
Source: RFC 1813, section 2.5.3 (sattr3); utimensat(2). Lustre is the exception, there it is the client's time: its
nodes need NTP, or a `slack_seconds` as large as their clocks differ.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from crosswind.data.schema.run import new_ulid
from crosswind.models.tuner.service.folder.files import DRAFT_SUFFIX, new_file, reaching
from crosswind.models.tuner.service.service import NANOSECONDS


class FolderClock(Protocol):
    """The time in a folder, with which files are stamped."""

    def now_ns(self, folder: Path) -> int:
        """Return nanoseconds since 1970 on the folder's clock. Raises: UnavailableError."""
        ...

    def stamp(self, path: Path) -> None:
        """Set the file's modification time to now. Raises: UnavailableError."""
        ...


@dataclass(frozen=True)
class FileSystemClock:
    """The file system's clock; leases hold `slack_seconds` longer than they say."""

    slack_seconds: float = 0.0

    def now_ns(self, folder: Path) -> int:
        """Return the time stamp of a file made now. Its creation also makes an NFS client look at the folder afresh."""
        path = folder / f".{new_ulid()}{DRAFT_SUFFIX}"
        with reaching(path):
            descriptor = new_file(path)
            try:
                os.utime(path)
                return os.fstat(descriptor).st_mtime_ns - round(self.slack_seconds * NANOSECONDS)
            finally:
                os.close(descriptor)
                path.unlink(missing_ok=True)

    def stamp(self, path: Path) -> None:
        """Set the file's modification time to now."""
        with reaching(path):
            os.utime(path)
