"""Digests of a file's content and of its beginnings, which show whether it is an earlier file that has grown."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from crosswind.data.catalog.read_files import ReadFile
from crosswind.data.schema.errors import UnavailableError

BLOCK_BYTES = 1 << 20
LARGE_BYTES = 1 << 26  # of a file next to a tracker's own


@dataclass(frozen=True)
class Digests:
    """Digests of a file: of all of it, of its whole lines, and of its beginnings."""

    whole: str
    lines: str
    lines_bytes: int
    beginnings: Mapping[int, str]

    def starts_with(self, earlier: ReadFile) -> bool:
        """Return whether the file begins with the content read then."""
        return self.beginnings.get(earlier.size_bytes) == earlier.content


def digests_of(path: Path, sizes: Iterable[int]) -> Digests:
    """Return the digests of a file, or of a folder with all its files; `sizes` are those of the beginnings to digest.

    Raises: UnavailableError.
    """
    try:
        return _of_folder(path) if path.is_dir() else _of_file(path, sorted(set(sizes)))
    except OSError as error:
        raise UnavailableError(f"{error.filename or path}: {error.strerror}") from error


def _of_file(path: Path, sizes: list[int]) -> Digests:
    digest, size = hashlib.sha256(), 0
    before, whole_lines, lines_bytes = digest.copy(), b"", 0  # up to the last line end: digested once, at the end
    beginnings: dict[int, str] = {}
    for block in _blocks(path):
        for wanted in (earlier for earlier in sizes if size < earlier <= size + len(block)):
            beginnings[wanted] = _continued(digest, block[: wanted - size]).hexdigest()
        if cut := block.rfind(b"\n") + 1:
            before, whole_lines, lines_bytes = digest.copy(), block[:cut], size + cut
        digest.update(block)
        size += len(block)
    return Digests(digest.hexdigest(), _continued(before, whole_lines).hexdigest(), lines_bytes, beginnings)


def _of_folder(path: Path) -> Digests:
    digest = hashlib.sha256()
    for file in sorted(entry for entry in path.rglob("*") if entry.is_file()):
        description = f"{file.relative_to(path)}\n{_short(file)}\n"
        digest.update(description.encode(errors="surrogateescape"))
    return Digests(digest.hexdigest(), digest.hexdigest(), 0, {})


def _short(path: Path) -> str:
    """Return a digest that changes when a folder's file does; checkpoints of gigabytes are not read for that."""
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}" if status.st_size > LARGE_BYTES else _of_file(path, []).whole


def _continued(digest: "hashlib._Hash", data: bytes) -> "hashlib._Hash":
    copy = digest.copy()
    copy.update(data)
    return copy


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            yield block
