"""Publication of files in the lake: whole, on the disk, and by one rename."""

import secrets
from collections.abc import Iterable
from pathlib import Path

from crosswind.data.files import make_private, sync

WRITING = ".writing"  # folder of files that are not whole yet
Staged = tuple[Path, Path]  # where a file is, and where it shall be


def hidden_name(root: Path, path: Path) -> Path:
    """Return a path where no query looks, for a file below `root` that shall be at `path`."""
    folder = root / WRITING
    make_private(root)
    make_private(folder)
    return folder / f"{'.'.join(path.relative_to(root).parts)}.{secrets.token_hex(4)}"


def drop(staged: Iterable[Staged]) -> None:
    """Removes what was written and shall not appear."""
    for hidden, _ in staged:
        hidden.unlink(missing_ok=True)


def land(staged: Iterable[Staged]) -> set[Path]:
    """Move files, once they are on the disk, to where queries find them. Return the folders that changed.

    What killed writers of the same parts left is removed, after one look at the folder for all files together.
    Raises: OSError.
    """
    staged = list(staged)
    folders = {folder for hidden, path in staged for folder in _landed(hidden, path)}
    stems = {hidden.stem for hidden, _ in staged}
    for writing in {hidden.parent for hidden, _ in staged}:
        drop((other, other) for other in writing.iterdir() if other.stem in stems)
    return folders


def _landed(hidden: Path, path: Path) -> list[Path]:
    new_folders = [folder.parent for folder in (path.parent, *path.parents[1:3]) if not folder.exists()]
    make_private(path.parent.parent)
    make_private(path.parent)
    try:
        sync(hidden)
        hidden.rename(path)
    except FileNotFoundError:  # another writer of the same part was faster, and cleared ours away
        if not path.exists():
            raise
    return [path.parent, *new_folders]


def publish(hidden: Path, path: Path) -> None:
    """Moves a file to where queries find it, to stay there after a power failure. Raises: OSError."""
    for folder in land([(hidden, path)]):
        sync(folder)
