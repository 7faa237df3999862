"""Recorded trees of a kernel's files (`/proc`, `/sys`, `/run`): one readable text file each, unpacked when first used.

`=== PATH` begins a file, `=== PATH -> TARGET` is a link; `=== PATH \\` begins a file without a newline at its end.
`python -m tests.ingest.trees FOLDER > tests/ingest/recorded/trees/NAME.txt` packs a folder.
"""

import functools
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

RECORDINGS = Path(__file__).parent / "recorded"  # the inputs of readers and collectors, for all tests
PACKED = RECORDINGS / "trees"
UNPACKED = ExitStack()  # tests/conftest.py closes it: the workers of pytest-xdist end without atexit
BEGIN, LINK, OPEN_ENDED = "=== ", " -> ", " \\"


@functools.cache
def recorded_tree(name: str) -> Path:
    """Return the root of a recorded tree, for reading alone: copy it to change it."""
    root = Path(UNPACKED.enter_context(TemporaryDirectory(prefix=f"crosswind-tree-{name}-")))
    unpack((PACKED / f"{name}.txt").read_text(), root)
    return root


def unpack(text: str, root: Path) -> None:
    """Write the files and links of a packed tree."""
    for entry in ("\n" + text.removesuffix("\n")).split(f"\n{BEGIN}")[1:]:
        heading, _, content = entry.partition("\n")
        path, is_link, target = heading.partition(LINK)
        file = root / path.removesuffix(OPEN_ENDED)
        file.parent.mkdir(parents=True, exist_ok=True)
        if is_link:
            file.symlink_to(target)
        else:
            file.write_text(content if path.endswith(OPEN_ENDED) or not content else f"{content}\n")


def pack(root: Path) -> str:
    """Return a folder's files and links as text. Raises: ValueError for a file that unpacking would change."""
    return "".join(_entries(root))


def _entries(root: Path) -> Iterator[str]:
    for file in sorted(path for path in root.rglob("*") if path.is_symlink() or path.is_file()):
        path = str(file.relative_to(root))
        if file.is_symlink():
            yield f"{BEGIN}{path}{LINK}{file.readlink()}\n"
            continue
        content = file.read_text()
        if f"\n{BEGIN}" in f"\n{content}" or content == "\n":
            raise ValueError(f"{file}: a line begins with {BEGIN!r}, or an empty line is all there is")
        if content and not content.endswith("\n"):
            path, content = f"{path}{OPEN_ENDED}", f"{content}\n"
        yield f"{BEGIN}{path}\n{content}"


if __name__ == "__main__":
    sys.stdout.write(pack(Path(sys.argv[1])))
