"""The contents of a folder: things that readers know, and what nobody knows."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.reader.reader import FolderReader, Reader
from crosswind.ingest.readers import READERS, reader_for


@dataclass(frozen=True)
class Found:
    """A file or folder and its reader, or why it has none."""

    path: Path
    reader: Reader | None
    reason: str = ""
    is_failure: bool = False  # it may be of a known format, and could not be looked at


def found_below(folder: Path, format: str | None = None) -> Iterator[Found]:  # noqa: A002  as users say it
    """Everything below a folder, in the order of names; links are not followed, nor what is hidden looked at.

    Raises: InvalidInputError for a format that nobody knows, UnavailableError for a folder that cannot be listed.
    """
    waiting = [(folder, True)]
    while waiting:
        path, is_folder = waiting.pop()
        if not is_folder:
            yield _found(path, format)
            continue
        try:
            reader = _reader_of(path, format)
            waiting += [] if reader else reversed(_entries(path))
        except UnavailableError as error:
            if path == folder:
                raise
            yield Found(path, None, str(error), is_failure=True)
            continue
        if reader:
            yield Found(path, reader)


def _reader_of(folder: Path, format: str | None) -> Reader | None:  # noqa: A002
    """The reader of which the whole folder is one thing. Raises: UnavailableError."""
    named = (reader for reader in READERS if isinstance(reader, FolderReader) and format in (None, reader.name))
    return next((reader for reader in named if _is_its(reader, folder)), None)


def _is_its(reader: FolderReader, folder: Path) -> bool:
    """Raises: UnavailableError."""
    try:
        return reader.recognises_folder(folder)
    except OSError as error:
        raise UnavailableError(f"{folder}: {error.strerror}") from error


def _entries(folder: Path) -> list[tuple[Path, bool]]:
    """Return the visible files and folders in a folder, sorted, each with whether it is a folder."""
    try:
        with os.scandir(folder) as entries:
            shown = (entry for entry in entries if not entry.name.startswith(".") and not entry.is_symlink())
            kinds = ((Path(entry.path), entry.is_dir(), entry.is_file()) for entry in shown)
            return sorted((path, is_folder) for path, is_folder, is_file in kinds if is_folder or is_file)
    except OSError as error:
        raise UnavailableError(f"{folder}: {error.strerror}") from error


def _found(path: Path, format: str | None) -> Found:  # noqa: A002
    try:
        return Found(path, reader_for(path, format))
    except MalformedError as error:
        return Found(path, None, str(error))
    except UnavailableError as error:
        return Found(path, None, str(error), is_failure=True)
