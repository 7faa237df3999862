"""Segments that are kept aside because not everything in them could be understood."""

import logging
import os
import shutil
from pathlib import Path

log = logging.getLogger("crosswind.ingest")


def keep_copy(path: Path, kept: Path) -> None:
    """Makes `kept` hold what `path` holds, safe from a power failure; a copy that is there already is left.

    Raises: OSError.
    """
    try:
        os.link(path, kept)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        shutil.copyfile(path, kept)
    for each, flags in ((kept, os.O_RDONLY), (kept.parent, os.O_RDONLY | os.O_DIRECTORY)):
        descriptor = os.open(each, flags)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def keep_within(folder: Path, limit_bytes: int) -> None:
    """Gives up the oldest files of a folder until it holds at most so much, and logs each."""
    files = sorted((file.stat().st_mtime_ns, file.stat().st_size, file) for file in folder.iterdir() if file.is_file())
    excess = sum(size for _, size, _ in files) - limit_bytes
    for _, size, file in files:
        if excess <= 0:
            return
        file.unlink(missing_ok=True)
        log.warning("gave up %s, of %d bytes: %s may hold %d", file.name, size, folder, limit_bytes)
        excess -= size
