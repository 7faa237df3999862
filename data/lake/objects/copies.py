"""Copies of objects in a folder, at most so many bytes: those that were not used for longest go first."""

import hashlib
import os
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.data.files import make_private
from crosswind.data.lake.locks import READING, alone
from crosswind.data.lake.objects.bounded import at_once
from crosswind.data.lake.objects.bucket import Bucket
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.lake_file import LakeFile

FETCHING = ".fetching"
MOVES = 5
TOUCH_SECONDS = 30.0  # how exactly it is noted when a copy was used
USED_SECONDS = 60.0  # a copy that was used so lately stays: its reader may be about to open it
LOW = 0.9  # of the bytes that may be kept: so much stays when some have to go
ROOM_BYTES = 200_000_000  # stay free on the disk, or a fiftieth of a small one: copies go instead
SOUND_MAX = 200_000  # copies that are known to be sound
State = tuple[int, int]


@dataclass
class Copies:
    """The objects that were needed here, each under its key below a folder, which other processes may use too.

    A process reads a copy that it did not make itself once, to see that it is sound, and again after it has changed.
    """

    root: Path
    bucket: Bucket
    _sound: dict[str, State] = field(default_factory=dict)
    _turns: dict[str, threading.Lock] = field(default_factory=dict)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _new_bytes: int | None = None  # since room was made last

    def path(self, key: str) -> Path:
        """Return where the copy of an object is, or would be."""
        return self.root / key

    def bring(self, files: Sequence[LakeFile]) -> None:
        """Make sure that the objects are here, whole.

        Raises: UnavailableError naming an object that cannot be had, or where they are more than may be kept;
        MalformedError naming one that is not what was stored.
        """
        missing = [file for file in files if not self._is_known(file)]
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

    def _is_known(self, file: LakeFile) -> bool:
        """Return whether the copy is here as it was when it was sound, and note that it is used."""
        try:
            facts = self.path(file.key).stat()
        except FileNotFoundError:
            return False
        now = time.time()
        if facts.st_atime < now - TOUCH_SECONDS:
            os.utime(self.path(file.key), ns=(int(now * 1e9), facts.st_mtime_ns))
        return self._sound.get(file.key) == (facts.st_mtime_ns, facts.st_size)

    def _fetch(self, file: LakeFile) -> None:
        with self._turn:
            turn = self._turns.setdefault(file.key, threading.Lock())
        try:
            with turn:
                if not self._is_known(file) and not self._is_sound(file):
                    self._download(file)
        finally:
            with self._turn:
                self._turns.pop(file.key, None)

    def _is_sound(self, file: LakeFile) -> bool:
        """Return whether a copy that another process made has the content of the object."""
        try:
            with self.path(file.key).open("rb") as copy:
                is_sound = hashlib.file_digest(copy, "sha256").hexdigest() == file.checksum
                facts = os.fstat(copy.fileno())
        except OSError:  # it is not there, or not readable
            return False
        if is_sound:
            self._note_sound(file.key, facts)
        return is_sound

    def _note_sound(self, key: str, facts: os.stat_result) -> None:
        if len(self._sound) >= SOUND_MAX:
            self._sound.clear()
        self._sound[key] = facts.st_mtime_ns, facts.st_size

    def _download(self, file: LakeFile) -> None:
        try:
            with self.fetched(file) as draft:
                self._put(draft, file)
        except OSError as error:
            said = f"the folder of copies {self.root} takes no file of {file.bytes} bytes: {error.strerror or error}"
            raise UnavailableError(said) from error

    @contextmanager
    def fetched(self, file: LakeFile) -> Iterator[Path]:
        """Yield an object's content, in a file that is removed at the end if it is still there.

        Raises: OSError, UnavailableError, MalformedError.
        """
        folder = self.root / FETCHING / os.urandom(8).hex()
        make_private(folder)
        draft = folder / Path(file.key).name
        try:
            self.bucket.get(file.key, draft, size=file.bytes, checksum=file.checksum)
            yield draft
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _put(self, draft: Path, file: LakeFile) -> None:
        os.utime(draft, ns=(time.time_ns(), file.added_ns))  # definitions are in the order of their times
        facts = draft.stat()
        self._move(draft, self.path(file.key))
        self._note_sound(file.key, facts)
        self._new_bytes = (self._new_bytes or 0) + file.bytes

    def _move(self, draft: Path, path: Path) -> None:
        for _ in range(MOVES):
            make_private(path.parent)
            try:
                draft.rename(path)
            except FileNotFoundError:  # another process has removed the empty folder just now
                continue
            return
        draft.rename(path)

    def make_room(self) -> None:
        """Remove copies beyond the limit, once some came, or where the disk is full; not while anybody reads.

        A process looks once in any case: those before it may have ended before they did. Raises: OSError.
        """
        limit, lacking = self.bucket.address.cache_bytes, self._lacking_bytes()
        is_much = self._new_bytes is None or self._new_bytes >= (1 - LOW) * limit / 2
        if not is_much and not lacking:
            return
        with alone(self.root / READING) as nobody_reads:
            if nobody_reads:
                self._new_bytes = 0
                self._evict(limit, lacking)

    def _lacking_bytes(self) -> int:
        disk = shutil.disk_usage(self.root)
        return max(min(ROOM_BYTES, disk.total // 50) - disk.free, 0)

    def _evict(self, limit: int, lacking: int) -> None:
        copies = sorted(self._all())
        size = sum(size for _, size, _ in copies)
        kept = min(LOW * limit if size > limit else size, size - lacking)
        last_used = time.time_ns() - int(USED_SECONDS * 1e9)
        for used_ns, bytes_, path in copies:
            if size <= kept or used_ns > last_used:
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
        for folder in (self.root / FETCHING).glob("*"):
            with suppress(FileNotFoundError):  # it was fetched just now
                if folder.stat().st_mtime < time.time() - seconds:
                    shutil.rmtree(folder, ignore_errors=True)

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
