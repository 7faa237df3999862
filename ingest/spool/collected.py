"""Collecting: a process that takes the segments out of a spool says so, and without one they move to the store."""

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.files import PRIVATE_FILE, NoLocksError, lock_file, make_private, take_lock
from crosswind.data.schema.errors import UnavailableError
from crosswind.data.schema.paths import incoming_directory
from crosswind.ingest.spool.abandoned import is_abandoned_in
from crosswind.ingest.spool.spool import recover, sealed_segments

COLLECT_LOCK = "collect.lock"


@dataclass(frozen=True)
class HandedOver:
    """The segments that now lie in the store's folder, and those that stayed in the spool, with the reason."""

    moved: int = 0
    left: int = 0
    problem: str | None = None


@contextmanager
def collecting(spool: Path) -> Iterator[None]:
    """Say, as long as the block lasts, that this process takes the segments out of a spool; several may."""
    try:
        fd = os.open(spool / COLLECT_LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE_FILE)
    except OSError:  # a spool that cannot be written to, or is not there yet: nobody can wait for us in it
        yield
        return
    try:
        with suppress(OSError):  # no locks here
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


def is_collected(spool: Path) -> bool:
    """Return whether a process takes the segments out of this spool, as an agent that ships or `crosswind sync`."""
    if not (spool / COLLECT_LOCK).exists():
        return False
    try:
        with lock_file(spool / COLLECT_LOCK) as fd:
            return not take_lock(fd)
    except (NoLocksError, OSError):
        return False


def hand_over(spool: Path, home: Path, *, node: str, seconds: float) -> HandedOver:
    """Move a spool's finished segments into a store's folder, where any node reads them; stop after so many seconds.

    What dead writers left is finished, too. Each segment appears whole or not at all, and is never lost.
    """
    until, moved = time.monotonic() + seconds, 0
    incoming = incoming_directory(home)
    try:
        recover(spool, is_abandoned_in(spool, node))
        make_private(incoming)
        segments = sealed_segments(spool)
        for segment in segments:
            if time.monotonic() > until:
                return HandedOver(moved, len(segments) - moved, f"more than could be moved in {seconds:g} s")
            moved += _move(segment, incoming)
    except (OSError, UnavailableError) as error:
        return HandedOver(moved, len(sealed_segments(spool)), str(error))
    return HandedOver(moved)


def _move(segment: Path, folder: Path) -> int:
    """Return 1 if it was moved, 0 if somebody else took it meanwhile. Raises: OSError."""
    try:
        segment.rename(folder / segment.name)
    except FileNotFoundError:
        return 0
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return _copied(segment, folder)
    return 1


def _copied(segment: Path, folder: Path) -> int:
    """Copy a segment to another file system, and remove it here once it is on the disk there."""
    draft = folder / f".{segment.name}.{os.getpid()}"
    try:
        with segment.open("rb") as source, draft.open("xb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
            target.flush()
            os.fsync(target.fileno())
        draft.rename(folder / segment.name)
    except FileNotFoundError:
        draft.unlink(missing_ok=True)
        return 0
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    segment.unlink(missing_ok=True)
    return 1
