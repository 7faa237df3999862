"""How this installation is set up, from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from crosswind.data.paths import spool_directory, store_home
from crosswind.ingest.probe.place import system_name


@dataclass(frozen=True)
class Settings:
    """Where things are kept and who may ask; docs/settings.md lists the variables."""

    home: Path
    spool: Path
    system: str
    database: str | None = None
    token: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """CROSSWIND_HOME, CROSSWIND_SPOOL, CROSSWIND_SYSTEM, CROSSWIND_DATABASE, CROSSWIND_TOKEN."""
        return cls(
            home=store_home(environment),
            spool=spool_directory(environment),
            system=system_name(environment),
            database=environment.get("CROSSWIND_DATABASE") or None,
            token=environment.get("CROSSWIND_TOKEN") or None,
        )
