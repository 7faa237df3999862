"""Small files in the spool that appear whole or not at all."""

import os
from contextlib import suppress
from pathlib import Path

from crosswind.data.schema.run import new_ulid


def spool_text(folder: Path, text: str) -> Path:
    """A new file of this text, safely on disk; later ones sort behind it. Raises: OSError, nothing is left then."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{new_ulid()}.json"
    draft = path.with_suffix(".new")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    except OSError:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise
    return path
