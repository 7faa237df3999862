"""Trace files of a rank: written plain by the profiler, packed beside the training, or refused with the reason."""

import gzip
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from crosswind.data.files import published
from crosswind.data.schema.errors import ProjectError, UnavailableError
from crosswind.ingest.spool.plain_file import open_plain

PACKED, DRAFT, REFUSED = ".json.gz", ".json", ".refused"
NAME = re.compile(r"(?P<part>[A-Za-z0-9_-]+\.)?rank(?P<rank>\d{1,10})\.step(?P<first>\d{1,19})-(?P<last>\d{1,19})")
BLOCK = 1 << 20
FAST = 3  # of gzip's levels
PLAIN_PER_PACKED = 30  # at most; with this much free disk, what is written plain fits


def name_of(part: str, rank: int, first: int, last: int) -> str:
    """Return the name, without suffix, of a trace of these steps; `part` tells a run's restarts from it."""
    return f"{part}.rank{rank}.step{first}-{last}" if part else f"rank{rank}.step{first}-{last}"


def draft_of(folder: Path, name: str) -> Path:
    """Return the path that the profiler writes to."""
    return folder / f".{name}{DRAFT}"


def require_room(folder: Path, size_bytes: int) -> None:
    """Raises: UnavailableError where the disk has too little room for a trace of so many bytes, packed."""
    free = shutil.disk_usage(folder).free
    if free < 2 * min(size_bytes * PLAIN_PER_PACKED, 1 << 30):
        raise UnavailableError(f"only {free / 1e6:.0f} MB are free on the disk of {folder}")


def pack(draft: Path, limit_bytes: int) -> Path:
    """Pack what the profiler has written, remove that, and return the packed file.

    Raises: UnavailableError when it is cut off, too large, or the disk refuses; then nothing is left of it.
    """
    packed = draft.with_name(draft.name.removeprefix(".").removesuffix(DRAFT) + PACKED)
    try:
        _require_whole(draft)
        with open_plain(draft) as source, published(packed, is_durable=False) as file:
            with gzip.GzipFile("", "wb", FAST, file, mtime=0) as target:
                while block := source.read(BLOCK):
                    target.write(block)
                    _require_within(file.tell(), limit_bytes)
            _require_within(file.tell(), limit_bytes)
    except OSError as error:
        raise UnavailableError(f"the trace could not be written: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
    return packed


def _require_whole(draft: Path) -> None:
    with open_plain(draft) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 64))
        if not file.read().rstrip().endswith(b"}"):
            raise UnavailableError("the trace is cut off, as on a full disk")


def _require_within(size_bytes: int, limit_bytes: int) -> None:
    if size_bytes > limit_bytes:
        raise UnavailableError(f"the trace is larger than the {limit_bytes} bytes left for it")


def refuse(folder: Path, name: str, reason: str) -> None:
    """Note why there is no such trace; where even that cannot be written, nothing is."""
    with suppress(OSError, ProjectError), published(folder / f"{name}{REFUSED}", is_durable=False) as file:
        file.write(reason.encode("utf-8", "replace")[:500])
