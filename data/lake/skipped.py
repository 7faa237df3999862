"""Files of a lake that cannot be read: a server passes over them, and says which they are."""

import logging
import os
import struct
import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

log = logging.getLogger("crosswind.lake")
MAGIC = b"PAR1"
TAIL = struct.Struct("<I4s")  # the size of the footer, and the magic. Source: parquet.apache.org, file format
FRESH_SECONDS = 2.0
NEVER = (-FRESH_SECONDS, 0)
LOOKED_MAX = 200_000  # files that are known to be whole


class Skipped:
    """The damaged files below one folder; a file that is replaced by a whole one counts again."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._whole: set[Path] = set()
        self._counted = NEVER
        self._damaged: dict[Path, tuple[int, int]] = {}  # time and size of the file that was looked at

    @property
    def names(self) -> list[str]:
        """Return the names of the damaged files that are still there, below the folder."""
        return sorted(str(path.relative_to(self._root)) for path in list(self._damaged) if self._is_noted(path))

    @property
    def count(self) -> int:
        """Number of damaged files, as of two seconds ago at most."""
        now = time.monotonic()
        if now - self._counted[0] >= FRESH_SECONDS:
            self._counted = now, len(self.names)
        return self._counted[1]

    def whole(self, paths: Iterable[Path]) -> list[Path]:
        """Return those of the paths that count: whole as far as their ends show, and not noted as damaged."""
        return [path for path in paths if path in self._whole or self._passes(path)]

    def look_into(self, paths: Iterable[Path]) -> bool:
        """Note which files' footers cannot be read. Return whether one was noted that was not before."""
        return sum(map(self._is_garbled, paths)) > 0

    def _passes(self, path: Path) -> bool:
        if self._is_noted(path):
            return False
        if not _has_ends(path):
            self._note(path, "it is cut off, or no Parquet file")
            return False
        if len(self._whole) >= LOOKED_MAX:
            self._whole.clear()
        self._whole.add(path)
        return True

    def _is_garbled(self, path: Path) -> bool:
        try:
            pq.read_metadata(path)
        except FileNotFoundError:
            return False
        except (pa.ArrowException, OSError) as error:
            self._note(path, str(error)[:200])
            return True
        return False

    def _note(self, path: Path, reason: str) -> None:
        log.error("%s is passed over: %s", path, reason)
        self._whole.discard(path)
        self._damaged[path] = _state(path)
        self._counted = NEVER

    def _is_noted(self, path: Path) -> bool:
        noted = self._damaged.get(path)
        if noted is None or noted == _state(path):
            return noted is not None
        del self._damaged[path]  # somebody has put another file there
        return False


def _state(path: Path) -> tuple[int, int]:
    try:
        facts = path.stat()
    except OSError:
        return 0, 0
    return facts.st_mtime_ns, facts.st_size


def _has_ends(path: Path) -> bool:
    """Return whether a file begins and ends as Parquet does; one that is gone is left to who reads it."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(len(MAGIC))
            if size < len(MAGIC) + TAIL.size:
                return False
            file.seek(-TAIL.size, os.SEEK_END)
            footer, magic = TAIL.unpack(file.read(TAIL.size))
    except FileNotFoundError:
        return True
    is_framed: bool = head == magic == MAGIC and 0 < footer <= size - len(MAGIC) - TAIL.size
    return is_framed


def is_gone(error: Exception) -> bool:
    """Return whether a file was not there, rather than damaged."""
    return isinstance(error, FileNotFoundError) or "No files found" in str(error) or "No such file" in str(error)
