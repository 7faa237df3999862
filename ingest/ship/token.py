"""The token that a server asks for."""

import json
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path

from crosswind.data.schema.errors import InvalidInputError, UnavailableError

AGENT_SECONDS = 70.0  # it may wait for its server


def ship_token(environment: Mapping[str, str] = os.environ) -> str | None:
    """CROSSWIND_TOKEN, else what the file CROSSWIND_TOKEN_FILE holds, which nobody else may read, else what the node's
    agent gives this job at the Unix socket CROSSWIND_TOKEN_SOCKET; None without any of them.

    Raises: InvalidInputError, UnavailableError.
    """
    if token := environment.get("CROSSWIND_TOKEN"):
        return _checked(token, "CROSSWIND_TOKEN")
    if name := environment.get("CROSSWIND_TOKEN_FILE"):
        return _checked(_content(Path(name)), f"token file {name}")
    if name := environment.get("CROSSWIND_TOKEN_SOCKET"):
        return _checked(token_of_job(Path(name)), f"token socket {name}")
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


def token_of_job(path: Path) -> str:
    """Return the token of the job that this process belongs to, from its node's agent. Raises: UnavailableError."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(AGENT_SECONDS)
            connection.connect(str(path))
            with connection.makefile("rb") as file:
                said = json.loads(file.readline(10_000) or b"{}")
    except (OSError, ValueError) as error:
        raise UnavailableError(f"token socket {path}: {error}") from error
    token = said.get("token")
    if not isinstance(token, str):
        raise UnavailableError(f"token socket {path}: {said.get('problem', 'no answer')}")
    return token


def _checked(token: str, where: str) -> str:
    if not (token and token.isascii() and token.isprintable() and " " not in token):
        raise InvalidInputError(f"{where}: expected visible ASCII characters without spaces")
    return token
