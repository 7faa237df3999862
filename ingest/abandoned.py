"""Which `.open` files of a spool belong to dead writers, even where a living writer's lock cannot be seen.

On a file system of several nodes locks may hold on one node alone (NFS with local_lock, Lustre with localflock).
Sources: nfs(5), flock(2); Lustre Operations Manual, Flock Feature.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
OF_ONE_NODE = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs"}
)
SILENT_SECONDS = 600.0  # an agent writes at least every minute, a training loop every few steps
CLOCK = "sync.clock"
NOT_IN_ORIGIN = re.compile(r"[^A-Za-z0-9._-]")
ESCAPED = re.compile(r"\\([0-7]{3})")


def agent_origin(node: str) -> str:
    """The origin of what a node's agent writes."""
    return "agent." + re.sub(NOT_IN_ORIGIN, "_", node)[:90]


def is_abandoned_in(directory: Path, node: str, mounts: Path = MOUNTS) -> Callable[[Path], bool]:
    """Tells of an `.open` file there whether its writer is dead if its lock is free.

    On this node's own file systems a free lock says so. On others the writer must be this node's agent, or the file
    must not have grown for ten minutes by the file server's clock. Raises: OSError.
    """
    if file_system_of(directory, mounts) in OF_ONE_NODE:
        return lambda _: True
    own_agent, now = f".{agent_origin(node)}.open", _clock(directory)
    return lambda path: path.name.endswith(own_agent) or _is_silent(path, now)


def _is_silent(path: Path, now: float) -> bool:
    try:
        return now - path.stat().st_mtime >= SILENT_SECONDS
    except FileNotFoundError:  # its writer sealed it
        return False


def file_system_of(directory: Path, mounts: Path = MOUNTS) -> str:
    """The type of the file system that a folder is on, such as ext4, nfs4 or lustre; empty where nobody says.

    Source: proc_pid_mountinfo(5).
    """
    found, place = "", directory.resolve()
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return found
    longest = -1
    for line in lines:
        mount, _, rest = line.partition(" - ")
        point = Path(ESCAPED.sub(lambda code: chr(int(code[1], 8)), mount.split(" ")[4]))
        if place.is_relative_to(point) and len(point.parts) >= longest:  # of two on one place the later one is seen
            longest, found = len(point.parts), rest.split(" ")[0]
    return found


def _clock(directory: Path) -> float:
    """The time by the clock that stamps the files there."""
    path = directory / CLOCK
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o640)
    try:
        os.utime(fd)
        return os.fstat(fd).st_mtime
    finally:
        os.close(fd)
