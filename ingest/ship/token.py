"""The token that a server asks for."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from crosswind.data.schema.errors import InvalidInputError, UnavailableError


def ship_token(environment: Mapping[str, str] = os.environ) -> str | None:
    """CROSSWIND_TOKEN, else what the file CROSSWIND_TOKEN_FILE holds, which nobody else may read; None without either.

    Raises: InvalidInputError, UnavailableError.
    """
    if token := environment.get("CROSSWIND_TOKEN"):
        return _checked(token, "CROSSWIND_TOKEN")
    if name := environment.get("CROSSWIND_TOKEN_FILE"):
        return _checked(_content(Path(name)), f"token file {name}")
    return None


def _content(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise InvalidInputError(f"token file {path}: others may read it (mode {mode:04o}): chmod 600 {path}")
            return file.read(10_000).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UnavailableError(f"token file {path}: {error}") from error


def _checked(token: str, where: str) -> str:
    if not (token and token.isascii() and token.isprintable() and " " not in token):
        raise InvalidInputError(f"{where}: expected visible ASCII characters without spaces")
    return token
