"""The mark of a lake: a small file at its root that says which lake it is."""

import os
from contextlib import suppress
from pathlib import Path

from crosswind.data.files import make_private, private, sync
from crosswind.data.schema.errors import UnavailableError

MARK = ".lake"
READ_BYTES = 100


def mark_in(folder: Path) -> str | None:
    """Return the identity in a folder; None where there is none. Raises: UnavailableError."""
    try:
        with (folder / MARK).open("rb") as file:
            return file.read(READ_BYTES).decode(errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnavailableError(f"{folder / MARK} cannot be read: {error.strerror}") from error


def make_mark(folder: Path, identity: str) -> None:
    """Mark a lake, whole or not at all, unless it has a mark. Raises: UnavailableError."""
    mark = folder / MARK
    draft = folder / f"{MARK}.{os.urandom(4).hex()}"
    try:
        make_private(folder)
        with open(draft, "xb", opener=private) as file:
            file.write(f"{identity}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        _put(draft, mark)
        sync(folder)
    except OSError as error:
        raise UnavailableError(f"the lake {folder} cannot be marked: {error.strerror}") from error
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _put(draft: Path, mark: Path) -> None:
    try:
        os.link(draft, mark)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        draft.rename(mark)
