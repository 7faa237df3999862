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
    is_failure: bool = False  # it may be of a known format, and could not be looked at


def found_below(folder: Path, format: str | None = None) -> Iterator[Found]:  # noqa: A002  as users say it
    """Everything below a folder, in the order of names; links are not followed, nor what is hidden looked at.

    Raises: InvalidInputError for a format that nobody knows, UnavailableError for a folder that cannot be listed.
    """
    for each in READERS:
        if isinstance(each, FolderReader) and format in (None, each.name) and _is_its(each, folder):
            yield Found(folder, each)
            return
    for path, is_folder in _entries(folder):
        if is_folder:
            yield from _found_in(path, format)
        else:
            yield _found(path, format)


def _found_in(folder: Path, format: str | None) -> Iterator[Found]:  # noqa: A002
    """What is below a folder that is not the one that was asked for: others are looked at when it cannot be."""
    try:
        yield from found_below(folder, format)
    except UnavailableError as error:
        yield Found(folder, None, str(error), is_failure=True)


def _is_its(reader: FolderReader, folder: Path) -> bool:
    """Raises: UnavailableError."""
    try:
        return reader.recognises_folder(folder)
    except OSError as error:
        raise UnavailableError(f"{folder}: {error.strerror}") from error


def _entries(folder: Path) -> list[tuple[Path, bool]]:
    """What is there, and whether it is a folder."""
    try:
        with os.scandir(folder) as entries:
            shown = (entry for entry in entries if not entry.name.startswith(".") and not entry.is_symlink())
            known = ((Path(entry.path), entry.is_dir(), entry.is_file()) for entry in shown)
            return sorted((path, is_folder) for path, is_folder, is_file in known if is_folder or is_file)
    except OSError as error:
        raise UnavailableError(f"{folder}: {error.strerror}") from error


def _found(path: Path, format: str | None) -> Found:  # noqa: A002
    try:
        return Found(path, reader_for(path, format))
    except MalformedError as error:
        return Found(path, None, str(error))
    except UnavailableError as error:
        return Found(path, None, str(error), is_failure=True)
