"""Abandoned files: `.open` files of dead writers, recognised even where a living writer's lock cannot be seen."""

import os
import re
from collections.abc import Callable
from pathlib import Path

from crosswind.data.files import PRIVATE_FILE
from crosswind.data.lake.mounts import MOUNTS, mount_of

SILENT_SECONDS = 600.0  # an agent writes at least every minute, a training loop every few steps
CLOCK = "sync.clock"
NOT_IN_ORIGIN = re.compile(r"[^A-Za-z0-9._-]")


def agent_origin(node: str) -> str:
    """Return the origin in the file names of a node's agent."""
    return "agent." + re.sub(NOT_IN_ORIGIN, "_", node)[:90]


def is_abandoned_in(directory: Path, node: str, mounts: Path = MOUNTS) -> Callable[[Path], bool]:
    """Return a test of `.open` files in a folder: whether the writer is dead, given that the lock is free.

    On this node's own file systems a free lock says so. On others the writer must be this node's agent, or the file
    must not have grown for ten minutes by the file server's clock. Raises: OSError.
    """
    if mount_of(directory, mounts).is_of_one_node:
        return lambda _: True
    own_agent, now = f".{agent_origin(node)}.open", _clock(directory)
    return lambda path: path.name.endswith(own_agent) or _is_silent(path, now)


def _is_silent(path: Path, now: float) -> bool:
    try:
        return now - path.stat().st_mtime >= SILENT_SECONDS
    except FileNotFoundError:  # its writer sealed it
        return False


def _clock(directory: Path) -> float:
    """Return the time by the clock that stamps the files there."""
    path = directory / CLOCK
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, PRIVATE_FILE)
    try:
        os.utime(fd)
        return os.fstat(fd).st_mtime
    finally:
        os.close(fd)
