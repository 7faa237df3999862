"""The form of a backup: files of a store with a manifest of their checksums, in a folder or as one tar file.

The manifest is the last file of a tar: one that was cut off has none.
"""

import hashlib
import io
import json
import tarfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from crosswind.data.files import PRIVATE_FILE, PRIVATE_FOLDER, make_private, private, published, sync
from crosswind.data.schema.errors import ConflictError, MalformedError

MANIFEST, CATALOG = "manifest.json", "catalog.sqlite"
FOLDERS = ("lake", "models")
FILES = (CATALOG, "topology.conf")
PIECE_BYTES, MANIFEST_BYTES = 1 << 20, 1 << 30
FORM = 1  # of the manifest


@dataclass(frozen=True)
class Entry:
    """One file of a backup, by its path below the store's folder."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The contents of a backup, when it was made (ns UTC), and by which version."""

    entries: tuple[Entry, ...]
    made_ns: int
    crosswind: str
    form: int = FORM

    @classmethod
    def of(cls, text: bytes) -> "Manifest":
        """Return the manifest in a text. Raises: MalformedError, ConflictError."""
        try:
            facts = json.loads(text)
            form = facts["form"]
            if form != FORM:
                raise ConflictError(f"backup of form {form!r:.20}, this version knows {FORM}: update Crosswind")
            entries = tuple(Entry(**{"name": "", **entry}) for entry in facts.pop("entries"))
            return cls(entries, **facts)
        except (ValueError, TypeError, KeyError) as error:
            raise MalformedError(f"{MANIFEST}: expected the manifest of a backup: {error!s:.200}") from error

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.entries)


class Writer(Protocol):
    """Takes the files of a backup."""

    def add(self, path: Path, name: str) -> None:
        """Add a file under this name. Raises: OSError."""
        ...


class _Writing:
    def __init__(self, put: "TarPut | FolderPut") -> None:
        self._put = put
        self.entries: list[Entry] = []

    def add(self, path: Path, name: str) -> None:
        """Add a file under this name. Raises: OSError."""
        with path.open("rb") as file:
            size = path.stat().st_size
            reading = _Digesting(file)
            self._put(name, size, reading)
        self.entries.append(Entry(name, size, reading.digest.hexdigest()))


class _Digesting(io.RawIOBase):
    """Reads a file, and digests what was read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        piece = self._file.read(size)
        self.digest.update(piece)
        return piece


class TarPut:
    """Puts files into a tar."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar

    def __call__(self, name: str, size: int, reading: "_Digesting | io.BytesIO") -> None:
        """Put a file of this size."""
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = size, PRIVATE_FILE, int(time.time())
        self._tar.addfile(member, reading)


class FolderPut:
    """Puts files into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, name: str, _size: int, reading: "_Digesting | io.BytesIO") -> None:
        """Put a file; it is on the disk then."""
        path = self._folder / name
        make_private(path.parent)
        with published(path) as file:
            while piece := reading.read(PIECE_BYTES):
                file.write(piece)


@contextmanager
def writing(target: Path) -> Iterator[Writer]:
    """Yield what takes files for a backup: a folder where `target` is one, else a tar that appears whole at the end.

    Raises: ConflictError where there is something; OSError.
    """
    if target.is_dir():
        if any(target.iterdir()):
            raise ConflictError(f"{target}: expected an empty folder, or a file that is not there yet")
        with _into(FolderPut(target)) as writer:
            yield writer
        sync(target)
        return
    if target.exists():
        raise ConflictError(f"{target} is there already")
    with (
        published(target) as file,
        tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as tar,
        _into(TarPut(tar)) as writer,
    ):
        yield writer


@contextmanager
def _into(put: "TarPut | FolderPut") -> Iterator[_Writing]:
    writer = _Writing(put)
    yield writer
    manifest = Manifest(tuple(writer.entries), time.time_ns(), version("crosswind"))
    text = json.dumps(asdict(manifest), indent=1).encode()
    put(MANIFEST, len(text), io.BytesIO(text))


def read_into(source: Path, folder: Path, wanted: Callable[[str], bool] = lambda _name: True) -> Manifest:
    """Read a backup, checking every file of it, and the wanted ones into a folder that is empty. Return its manifest.

    Raises: MalformedError naming the file that is missing, torn, or not what was stored; ConflictError; OSError.
    """
    files = _files_of_folder(source) if source.is_dir() else _files_of_tar(source)
    digests: dict[str, tuple[int, str]] = {}
    text, name = None, "its beginning"
    try:
        for name, file in files:
            if name == MANIFEST:
                text = file.read(MANIFEST_BYTES)
            else:
                digests[name] = _taken(_checked_name(source, name), file, folder if wanted(name) else None)
    except (tarfile.TarError, EOFError) as error:
        raise MalformedError(f"{source}: no tar, or cut off at {name}: {error!s:.200}") from error
    if text is None:
        raise MalformedError(f"{source}: it has no {MANIFEST}, so it is no backup, or was cut off")
    manifest = Manifest.of(text)
    _compare(source, manifest, digests)
    return manifest


def _compare(source: Path, manifest: Manifest, digests: dict[str, tuple[int, str]]) -> None:
    for entry in manifest.entries:
        if entry.name not in digests:
            raise MalformedError(f"{source}: {entry.name} is missing")
        size, digest = digests.pop(entry.name)
        if size != entry.size:
            raise MalformedError(f"{source}: {entry.name} has {size} B, expected {entry.size}")
        if digest != entry.sha256:
            raise MalformedError(f"{source}: {entry.name} is not what was stored: its checksum differs")
    if digests:
        raise MalformedError(f"{source}: {min(digests)} is not in its manifest")


def _files_of_folder(source: Path) -> Iterator[tuple[str, BinaryIO]]:
    for path in sorted(source.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                yield path.relative_to(source).as_posix(), file


def _files_of_tar(source: Path) -> Iterator[tuple[str, BinaryIO]]:
    with tarfile.open(source, "r:") as tar:
        for member in tar:
            file = tar.extractfile(member) if member.isreg() else None
            if file is None:
                raise MalformedError(f"{source}: {member.name!r:.200} is no plain file")
            yield member.name, file  # type: ignore[misc]


def _checked_name(source: Path, name: str) -> str:
    """Return a name that is one of a store's files, and leads nowhere else. Raises: MalformedError."""
    parts = PurePosixPath(name).parts
    is_ours = name in FILES or (len(parts) > 1 and parts[0] in FOLDERS)
    if not is_ours or ".." in parts or "\\" in name or not name.isprintable():
        raise MalformedError(f"{source}: {name!r:.200} is no file of a store")
    return name


def _taken(name: str, file: BinaryIO, folder: Path | None) -> tuple[int, str]:
    """Return size and digest of a file, which is then in the folder as well, and on the disk."""
    digest, size = hashlib.sha256(), 0
    if folder is None:
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
            size += len(piece)
        return size, digest.hexdigest()
    path = folder / name
    path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    with open(path, "xb", opener=private) as new:
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
            size += len(piece)
            new.write(piece)
    return size, digest.hexdigest()
