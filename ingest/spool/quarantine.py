"""Quarantine: copies of segments of which not everything could be read."""

import logging
import shutil
from collections.abc import Iterable
from pathlib import Path

from crosswind.data.files import published
from crosswind.ingest.spool.segment_reader import Readable, opened

log = logging.getLogger("crosswind.ingest")


def keep_copy(segment: Readable, kept: Path) -> None:
    """Copy the segment to `kept`, safe from a power failure; an existing copy stays.

    Raises: OSError; UnavailableError when the segment cannot be opened.
    """
    if kept.exists():
        return
    with opened(segment) as content, published(kept) as file:
        shutil.copyfileobj(content, file)


def keep_within(paths: Iterable[Path], limit_bytes: int) -> None:
    """Remove the oldest of these files until the rest hold at most `limit_bytes`, and log every one removed."""
    files = sorted(filter(None, map(_age_and_size, paths)))
    excess = sum(size for _, size, _ in files) - limit_bytes
    for _, size, path in files:
        if excess <= 0:
            return
        path.unlink(missing_ok=True)
        log.warning("removed %s, of %d bytes: the quarantine holds %d at most", path, size, limit_bytes)
        excess -= size


def _age_and_size(path: Path) -> tuple[int, int, Path] | None:
    try:
        status = path.stat()
    except FileNotFoundError:  # somebody else removed it
        return None
    return status.st_mtime_ns, status.st_size, path
