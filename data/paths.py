"""Where an installation keeps things, from the environment."""

import os
from collections.abc import Mapping
from pathlib import Path


def store_home(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of catalog and lake: CROSSWIND_HOME, else `crosswind` in the user's data folder."""
    if home := environment.get("CROSSWIND_HOME"):
        return Path(home).expanduser().absolute()
    data = environment.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(data).expanduser() / "crosswind"


def spool_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """The node-local folder that probe and agent write to: CROSSWIND_SPOOL, else `spool` below the store."""
    if spool := environment.get("CROSSWIND_SPOOL"):
        return Path(spool).expanduser().absolute()
    return store_home(environment) / "spool"
