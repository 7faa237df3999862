"""Places where an installation keeps things, from the environment."""

import os
from collections.abc import Mapping
from pathlib import Path

from crosswind.data.schema.errors import InvalidInputError

TRACE_CACHE_BYTES = 5_000_000_000  # of traces once read, unless CROSSWIND_TRACE_CACHE says otherwise


def store_home(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of catalog and lake: CROSSWIND_HOME, else `crosswind` in the user's data folder.

    Raises: InvalidInputError.
    """
    if home := environment.get("CROSSWIND_HOME"):
        return _absolute(home)
    return _absolute(environment.get("XDG_DATA_HOME") or "~/.local/share") / "crosswind"


def spool_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """The node-local folder that probe and agent write to: CROSSWIND_SPOOL, else `spool` below the store."""
    if spool := environment.get("CROSSWIND_SPOOL"):
        return _absolute(spool)
    return store_home(environment) / "spool"


def incoming_directory(home: Path) -> Path:
    """The folder of a store in which finished segments wait to be stored, where nobody collects the spool."""
    return home / "incoming"


def is_incoming(home: Path) -> bool:
    """Return whether segments wait in a store's folder."""
    return any(incoming_directory(home).glob("*.segment"))


def _absolute(folder: str) -> Path:
    try:
        return Path(folder).expanduser().absolute()
    except RuntimeError as error:  # a user without a home folder, as some containers and batch systems have
        raise InvalidInputError(f"folder {folder!r}: {error}: set CROSSWIND_HOME") from error
