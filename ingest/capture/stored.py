"""The end of a run's captures: the traces move into the store's folder, and the run's tags name them."""

import logging
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.data.files import make_private, published
from crosswind.data.schema.errors import ProjectError
from crosswind.ingest.capture.files import DRAFT, NAME, PACKED, REFUSED, pack, refuse
from crosswind.ingest.spool.plain_file import open_plain

TAG = "trace."
MAX_REASON = 500
Why = dict[tuple[int, int], tuple[str, str]]  # by rank and first step: role and reason
logger = logging.getLogger("crosswind")


@dataclass(frozen=True)
class Stored:
    """The traces of a run that are in the store's folder, and the tags of all that were planned."""

    files: list[Path] = field(default_factory=list)
    tags: dict[str, str] = field(default_factory=dict)


def stored(folder: Path, kept: Path, why: Why, size_bytes: int) -> Stored:
    """Move the traces of a run to `kept`, within so many bytes, remove `folder`, and return the traces there.

    What a killed rank left is packed first. A trace that was planned and is not there has a tag that says why.
    """
    tags: dict[str, str] = {}
    for draft in sorted(folder.glob(f".*{DRAFT}")):
        _pack_left(draft, size_bytes)
    left = size_bytes
    for packed in sorted(folder.glob(f"*{PACKED}")):
        if name := _name(packed, PACKED):
            tags[TAG + name], size = _kept(packed, kept, left, _words(name, why))
            left -= size
    for refused in sorted(folder.glob(f"*{REFUSED}")):
        if (name := _name(refused, REFUSED)) and TAG + name not in tags:
            tags[TAG + name] = f"not captured: {_reason(refused)}"
    tags |= _missing(why, tags)
    shutil.rmtree(folder, ignore_errors=True)
    files = [kept / (tag.removeprefix(TAG) + PACKED) for tag in tags]
    return Stored([path for path in files if path.is_file()], tags)


def _pack_left(draft: Path, size_bytes: int) -> None:
    name = draft.name.removeprefix(".").removesuffix(DRAFT)
    try:
        pack(draft, size_bytes)
    except (ProjectError, OSError) as error:
        refuse(draft.parent, name, str(error))


def _name(path: Path, suffix: str) -> str | None:
    name = path.name.removesuffix(suffix)
    return name if NAME.fullmatch(name) else None


def _kept(packed: Path, kept: Path, left: int, words: str) -> tuple[str, int]:
    """Return the tag of a trace, and the bytes it takes in the store's folder."""
    try:
        size = packed.lstat().st_size
        if size > left:
            return f"not kept: {size} bytes are more than the {left} left", 0
        _move(packed, kept)
    except (OSError, ProjectError) as error:
        logger.warning("a trace is not kept: %s", error)
        return f"not kept: {error}"[:MAX_REASON], 0
    return f"{words}{size} bytes: traces/{kept.name}/{packed.name}", size


def _move(packed: Path, kept: Path) -> None:
    """Move a plain file, by a copy to another file system. Raises: OSError, ProjectError."""
    make_private(kept)
    with open_plain(packed) as source:
        with suppress(OSError):
            os.fchmod(source.fileno(), 0o600)
            packed.rename(kept / packed.name)
            return
        with published(kept / packed.name) as target:
            shutil.copyfileobj(source, target, 1 << 20)


def _words(name: str, why: Mapping[tuple[int, int], tuple[str, str]]) -> str:
    matched = NAME.fullmatch(name)
    planned = why.get((int(matched["rank"]), int(matched["first"]))) if matched else None
    return "" if planned is None else f"{planned[0]} ({planned[1]}), "


def _reason(refused: Path) -> str:
    try:
        with open_plain(refused) as file:
            text = file.read(MAX_REASON).decode("utf-8", "replace")
    except (OSError, ProjectError) as error:
        text = str(error)
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _missing(why: Why, tags: Mapping[str, str]) -> dict[str, str]:
    """Return the tags of planned traces of which there is nothing: the rank ended before, or was killed."""
    there = {(int(m["rank"]), int(m["first"])) for tag in tags if (m := NAME.fullmatch(tag.removeprefix(TAG)))}
    words = "not captured: the rank had not come through these steps when it ended"
    return {f"{TAG}rank{rank}.step{first}": words for rank, first in sorted(why.keys() - there)}
