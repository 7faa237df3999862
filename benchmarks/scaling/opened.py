"""Files that are opened below a folder, counted by the kernel."""

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IN_OPEN, IN_NONBLOCK, IN_ISDIR = 0x20, 0o4000, 0x40000000  # inotify(7)
HEAD = struct.Struct("iIII")


@contextmanager
def opened(root: Path) -> Iterator[set[Path]]:
    """Collect the Parquet files below a folder that any process opens; the set is filled at the end.

    Raises: OSError where the kernel watches no further folders.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    watching = libc.inotify_init1(IN_NONBLOCK)
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    places = {_watched(libc, watching, folder): folder for folder in folders}
    files: set[Path] = set()
    try:
        yield files
        files |= set(_files(watching, places))
    finally:
        os.close(watching)


def _watched(libc: ctypes.CDLL, watching: int, folder: Path) -> int:
    place: int = libc.inotify_add_watch(watching, os.fsencode(folder), IN_OPEN)
    if place < 0:
        raise OSError(ctypes.get_errno(), f"{folder} cannot be watched")
    return place


def _files(watching: int, places: dict[int, Path]) -> Iterator[Path]:
    while True:
        try:
            events = os.read(watching, 1 << 16)
        except BlockingIOError:
            return
        while events:
            place, mask, _, length = HEAD.unpack_from(events)
            name = os.fsdecode(events[HEAD.size : HEAD.size + length].rstrip(b"\0"))
            events = events[HEAD.size + length :]
            if not mask & IN_ISDIR and name.endswith(".parquet"):
                yield places[place] / name
