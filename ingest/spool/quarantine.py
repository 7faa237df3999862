"""Segments that are kept aside because not everything in them could be understood."""

import logging
import shutil
from collections.abc import Iterable
from pathlib import Path

from crosswind.data.files import published
from crosswind.ingest.spool.segment_reader import Readable, opened

log = logging.getLogger("crosswind.ingest")


def keep_copy(segment: Readable, kept: Path) -> None:
    """Makes `kept` hold what the segment holds, safe from a power failure; a copy that is there already is left.

    Raises: OSError; UnavailableError when the segment cannot be opened.
    """
    if kept.exists():
        return
    with opened(segment) as content, published(kept) as file:
        shutil.copyfileobj(content, file)


def keep_within(paths: Iterable[Path], limit_bytes: int) -> None:
    """Gives up the oldest of these files until they hold at most so much, and logs each."""
    files = sorted(filter(None, map(_age_and_size, paths)))
    excess = sum(size for _, size, _ in files) - limit_bytes
    for _, size, path in files:
        if excess <= 0:
            return
        path.unlink(missing_ok=True)
        log.warning("gave up %s, of %d bytes: at most %d are kept aside", path, size, limit_bytes)
        excess -= size


def _age_and_size(path: Path) -> tuple[int, int, Path] | None:
    try:
        status = path.stat()
    except FileNotFoundError:  # somebody else gave it up
        return None
    return status.st_mtime_ns, status.st_size, path
