"""Small files in the spool that appear whole or not at all."""

from pathlib import Path

from crosswind.data.files import published
from crosswind.data.schema.run import new_ulid


def spool_text(folder: Path, text: str) -> Path:
    """A new file of this text, safely on disk; later ones sort behind it. Raises: OSError, nothing is left then."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{new_ulid()}.json"
    with published(path) as file:
        file.write(text.encode())
    return path
