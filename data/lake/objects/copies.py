"""Copies of objects in a folder, at most so many bytes: those that were not used for longest go first."""

import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.data.files import make_private
from crosswind.data.lake.locks import READING, alone
from crosswind.data.lake.objects.bounded import at_once
from crosswind.data.lake.objects.bucket import Bucket
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.lake_file import LakeFile

FETCHING = ".fetching"
TOUCH_SECONDS = 30.0  # how exactly it is noted when a copy was used
USED_SECONDS = 60.0  # a copy that was used so lately stays: its reader may be about to open it
LOW = 0.9  # of the bytes that may be kept: so much stays when some have to go


@dataclass
class Copies:
    """The objects that were needed here, each under its key below a folder."""

    root: Path
    bucket: Bucket
    _turns: dict[str, threading.Lock] = field(default_factory=dict)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _new_bytes: int = 0

    def path(self, key: str) -> Path:
        """Return where the copy of an object is, or would be."""
        return self.root / key

    def bring(self, files: Sequence[LakeFile]) -> None:
        """Make sure that the objects are here, whole.

        Raises: UnavailableError naming an object that cannot be had, or where they are more than may be kept;
        MalformedError naming one that is not what was stored.
        """
        missing = [file for file in files if not self._is_here(file)]
        if not missing:
            return
        size, limit = sum(file.bytes for file in files), self.bucket.address.cache_bytes
        if size > limit:
            raise UnavailableError(
                f"lake {self.bucket.address}: {len(files)} files of {files[0].set_name} with {size} bytes are needed "
                f"at once, more than CROSSWIND_LAKE_CACHE ({limit}): ask for less time, or keep more"
            )
        at_once([lambda file=file: self._fetch(file) for file in missing])  # type: ignore[misc]

    def keep(self, hidden: Path, file: LakeFile) -> None:
        """Take a file that was uploaded just now as the copy. Raises: OSError."""
        self._put(hidden, file)

    def _is_here(self, file: LakeFile) -> bool:
        path = self.path(file.key)
        try:
            facts = path.stat()
        except FileNotFoundError:
            return False
        now = time.time()
        if facts.st_atime < now - TOUCH_SECONDS:
            os.utime(path, ns=(int(now * 1e9), facts.st_mtime_ns))
        return facts.st_size == file.bytes

    def _fetch(self, file: LakeFile) -> None:
        with self._turn:
            turn = self._turns.setdefault(file.key, threading.Lock())
        try:
            with turn:
                if not self._is_here(file):
                    self._download(file)
        finally:
            with self._turn:
                self._turns.pop(file.key, None)

    def _download(self, file: LakeFile) -> None:
        make_private(self.root / FETCHING)
        draft = self.root / FETCHING / f"{os.urandom(8).hex()}"
        try:
            self.bucket.get(file.key, draft, size=file.bytes, checksum=file.checksum)
            self._put(draft, file)
        finally:
            draft.unlink(missing_ok=True)

    def _put(self, draft: Path, file: LakeFile) -> None:
        path = self.path(file.key)
        make_private(path.parent)
        os.utime(draft, ns=(time.time_ns(), file.added_ns))  # definitions are in the order of their times
        draft.rename(path)
        self._new_bytes += file.bytes

    def make_room(self) -> None:
        """Remove copies beyond the limit, once some came; not while anybody reads. Raises: OSError."""
        limit = self.bucket.address.cache_bytes
        if self._new_bytes < (1 - LOW) * limit / 2:
            return
        with alone(self.root / READING) as nobody_reads:
            if nobody_reads:
                self._new_bytes = 0
                self._evict(limit)

    def _evict(self, limit: int) -> None:
        copies = sorted(self._all())
        size = sum(size for _, size, _ in copies)
        if size <= limit:
            return
        last_used = time.time_ns() - int(USED_SECONDS * 1e9)
        for used_ns, bytes_, path in copies:
            if size <= LOW * limit or used_ns > last_used:
                return
            self._remove(path)
            size -= bytes_

    def remove_if(self, is_gone: Iterable[str]) -> None:
        """Remove copies of these objects, unless somebody reads. Raises: OSError."""
        with alone(self.root / READING) as nobody_reads:
            for key in is_gone if nobody_reads else ():
                self._remove(self.path(key))

    def older_keys(self, seconds: float) -> list[str]:
        """Return the objects of which there have been copies for so long."""
        limit = time.time() - seconds
        return [str(path.relative_to(self.root)) for _, _, path in self._all() if path.stat().st_ctime < limit]

    def remove_drafts(self, seconds: float) -> None:
        """Remove what killed processes were fetching so long ago."""
        for draft in (self.root / FETCHING).glob("*"):
            if draft.stat().st_mtime < time.time() - seconds:
                draft.unlink(missing_ok=True)

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        try:
            path.parent.rmdir()
        except OSError:  # others are in it
            return

    def _all(self) -> Iterator[tuple[int, int, Path]]:
        """Yield of each copy when it was used, its bytes and its path."""
        for folder in self.root.glob("set=*"):
            for place, _, names in os.walk(folder):
                for name in names:
                    path = Path(place) / name
                    try:
                        facts = path.stat()
                    except FileNotFoundError:
                        continue
                    yield facts.st_atime_ns, facts.st_size, path
