"""Publication of files that hold the rows of several parts: the manifest first, then the file.

From then on those parts count no more. Whoever publishes one holds the lock `.landing.lock` from the look at who holds
these parts already until the file is there, so that no row ever stands in two of them.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.files import sync
from crosswind.data.lake.locks import LANDING, alone
from crosswind.data.lake.mounts import MOUNTS, mount_of
from crosswind.data.lake.parts import part_names, superseded_in
from crosswind.data.lake.publish import Staged, drop, land
from crosswind.data.schema.errors import ConflictError, UnavailableError

PATIENCE_SECONDS = 10.0


@dataclass(frozen=True)
class Merged:
    """A merged file and its manifest, both where no query looks."""

    path: Path
    made_of: frozenset[str]
    manifest: Staged
    file: Staged


def publish_merged(root: Path, files: Sequence[Merged]) -> None:
    """Let them be found.

    Raises: ConflictError naming a part that stands in another file already; UnavailableError, OSError.
    """
    try:
        for draft in _drafts(files):
            sync(draft)  # before others have to wait
        with landing(root):
            for file in files:
                _check_not_held(file)
            for staged in ([file.manifest for file in files], [file.file for file in files]):
                for folder in land(staged):
                    sync(folder)
    finally:
        drop_merged(files)


def drop_merged(files: Iterable[Merged]) -> None:
    """Remove what was written and shall not appear."""
    drop((draft, draft) for draft in _drafts(files))


def _drafts(files: Iterable[Merged]) -> Iterator[Path]:
    for file in files:
        yield from (file.manifest[0], file.file[0])


@contextmanager
def landing(root: Path) -> Iterator[None]:
    """Within, nobody else publishes merged files of this lake. Raises: UnavailableError, OSError."""
    with alone(root / LANDING, PATIENCE_SECONDS) as is_ours:
        if not is_ours:
            raise UnavailableError(f"lake {root}: another process has held {LANDING} for {PATIENCE_SECONDS:.0f} s")
        yield


def why_unlocked(root: Path, mounts: Path = MOUNTS) -> str | None:
    """Return why locks below this folder need not hold for everybody who writes there; None where they do."""
    mount = mount_of(root, mounts)
    if mount.has_locks_of_all:
        return None
    return (
        f"{mount.kind or 'a file system that nobody names'}: expected a disk of this node, NFS with local_lock=none "
        "and without nocto, or Lustre with flock"
    )


def _check_not_held(file: Merged) -> None:
    folder = file.path.parent
    if taken := superseded_in(folder, part_names(folder), file.made_of):
        raise ConflictError(f"{folder / min(taken)} was compacted by another process meanwhile")
