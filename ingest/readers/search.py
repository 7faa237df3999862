"""What a folder holds: things that readers know, and what nobody knows."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.errors import MalformedError, UnavailableError
from crosswind.ingest.readers import READERS, reader_for
from crosswind.ingest.readers.reader import FolderReader, Reader


@dataclass(frozen=True)
class Found:
    """A file or folder and its reader, or why it has none."""

    path: Path
    reader: Reader | None
    reason: str = ""


def found_below(folder: Path, format: str | None = None) -> Iterator[Found]:  # noqa: A002  as users say it
    """Everything below a folder, in the order of names; links are not followed, nor what is hidden looked at.

    Raises: InvalidInputError for a format that nobody knows, UnavailableError for a folder that cannot be listed.
    """
    for each in READERS:
        if isinstance(each, FolderReader) and format in (None, each.name) and each.recognises_folder(folder):
            yield Found(folder, each)
            return
    for path in _entries(folder):
        if path.is_dir():
            yield from found_below(path, format)
        else:
            yield _found(path, format)


def _entries(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            shown = (entry for entry in entries if not entry.name.startswith(".") and not entry.is_symlink())
            return sorted(Path(entry.path) for entry in shown if entry.is_dir() or entry.is_file())
    except OSError as error:
        raise UnavailableError(f"{folder}: {error.strerror}") from error


def _found(path: Path, format: str | None) -> Found:  # noqa: A002
    try:
        return Found(path, reader_for(path, format))
    except (MalformedError, UnavailableError) as error:
        return Found(path, None, str(error))
