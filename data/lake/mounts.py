"""The file system that a folder is on, and whether a lock there holds on every node that mounts it.

On a file system of several nodes locks may hold on one node alone: NFS with local_lock, Lustre with localflock.
Sources: nfs(5), flock(2), proc_pid_mountinfo(5); Lustre Operations Manual, Flock Feature.
"""

import re
from dataclasses import dataclass
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
OF_ONE_NODE = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs"}
)
LOCKING = {"nfs": "local_lock=none", "nfs4": "local_lock=none", "lustre": "flock"}  # the option of locks for all nodes
LISTING_LATE = "nocto"  # a folder of NFS may be listed as it was before others changed it
ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Mount:
    """A file system as it is mounted here: its type, such as ext4, nfs4 or lustre; empty where it is unknown."""

    kind: str = ""
    options: frozenset[str] = frozenset()

    @property
    def is_of_one_node(self) -> bool:
        """Return whether no other node writes here."""
        return self.kind in OF_ONE_NODE

    @property
    def has_locks_of_all(self) -> bool:
        """Return whether a lock that is free is surely free on every node, and files are listed without delay."""
        is_locking = LOCKING.get(self.kind) in self.options and LISTING_LATE not in self.options
        return self.is_of_one_node or is_locking


def mount_of(directory: Path, mounts: Path = MOUNTS) -> Mount:
    """The mount that a folder is on."""
    deepest, place, longest = Mount(), directory.resolve(), -1
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return deepest
    for line in lines:
        mount, _, rest = line.partition(" - ")
        point = Path(ESCAPED.sub(lambda code: chr(int(code[1], 8)), mount.split(" ")[4]))
        if place.is_relative_to(point) and len(point.parts) >= longest:  # of two on one place the later one is seen
            kind, *_, options = rest.split(" ")
            longest, deepest = len(point.parts), Mount(kind, frozenset(options.split(",")))
    return deepest
