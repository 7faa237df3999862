"""Search of a folder for files and folders that readers recognise."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.ingest.reader.reader import FolderReader, Reader
from crosswind.ingest.readers.formats import READERS, reader_for


@dataclass(frozen=True)
class Candidate:
    """A file or folder with its reader, or the reason why it has none."""

    path: Path
    reader: Reader | None
    reason: str = ""
    is_failure: bool = False  # it may be of a known format, but could not be read


def candidates_below(folder: Path, format: str | None = None) -> Iterator[Candidate]:  # noqa: A002  the users' word
    """Yield everything below a folder, in the order of names, without links and hidden files.

    Raises: InvalidInputError for an unknown format, UnavailableError for a folder that cannot be listed.
    """
    waiting = [(folder, True)]
    while waiting:
        path, is_folder = waiting.pop()
        if not is_folder:
            yield _candidate(path, format)
            continue
        try:
            reader = folder_reader_of(path, format)
            waiting += [] if reader else reversed(_entries(path))
        except UnavailableError as error:
            if path == folder:
                raise
            yield Candidate(path, None, str(error), is_failure=True)
            continue
        if reader:
            yield Candidate(path, reader)


def folder_reader_of(folder: Path, format: str | None = None) -> Reader | None:  # noqa: A002
    """Return the reader that takes the whole folder as one; None where none does. Raises: UnavailableError."""
    named = (reader for reader in READERS if isinstance(reader, FolderReader) and format in (None, reader.name))
    return next((reader for reader in named if _is_its(reader, folder)), None)


def _is_its(reader: FolderReader, folder: Path) -> bool:
    """Return whether the folder is one of this reader's. Raises: UnavailableError."""
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


def _candidate(path: Path, format: str | None) -> Candidate:  # noqa: A002
    try:
        return Candidate(path, reader_for(path, format))
    except MalformedError as error:
        return Candidate(path, None, str(error))
    except UnavailableError as error:
        return Candidate(path, None, str(error), is_failure=True)
