"""Settings of an installation, from the environment."""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from crosswind.data.schema.access import AUDIT_KEPT_DAYS
from crosswind.data.schema.batch import BATCH_DAYS, days_of
from crosswind.data.schema.carbon import CarbonIntensity
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.keeping import KEEP, KeepPolicy
from crosswind.data.schema.lake_address import CACHE, LAKE, LakeAddress
from crosswind.data.schema.paths import TRACE_CACHE_BYTES, spool_directory, store_home
from crosswind.ingest.probe.place import system_name

CARBON, PUE = "CROSSWIND_CARBON_GRAMS_PER_KWH", "CROSSWIND_PUE"
QUOTA, AUDIT = "CROSSWIND_QUOTA_BYTES", "CROSSWIND_AUDIT_DAYS"
TRACES = "CROSSWIND_TRACE_CACHE"


@dataclass(frozen=True)
class Settings:
    """Folders, database, token, and the electricity's emissions; see docs/settings.md."""

    home: Path
    spool: Path
    system: str
    database: str | None = None
    token: str | None = None
    carbon_grams_per_kwh: str = ""
    pue: str = ""
    quota: str = ""
    audit_days: str = ""
    lake_address: str = field(default="", repr=False)  # it may hold a secret
    lake_cache: str = ""
    trace_cache: str = ""
    keep: str = ""
    batch_days: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """CROSSWIND_HOME, CROSSWIND_SPOOL, CROSSWIND_SYSTEM, CROSSWIND_DATABASE, CROSSWIND_TOKEN,
        CROSSWIND_CARBON_GRAMS_PER_KWH, CROSSWIND_PUE, CROSSWIND_QUOTA_BYTES, CROSSWIND_AUDIT_DAYS, CROSSWIND_LAKE,
        CROSSWIND_LAKE_CACHE, CROSSWIND_TRACE_CACHE, CROSSWIND_KEEP, CROSSWIND_BATCH_DAYS.
        """
        return cls(
            home=store_home(environment),
            spool=spool_directory(environment),
            system=system_name(environment),
            database=environment.get("CROSSWIND_DATABASE") or None,
            token=environment.get("CROSSWIND_TOKEN") or None,
            carbon_grams_per_kwh=environment.get(CARBON, ""),
            pue=environment.get(PUE, ""),
            quota=environment.get(QUOTA, ""),
            audit_days=environment.get(AUDIT, ""),
            lake_address=environment.get(LAKE, ""),
            lake_cache=environment.get(CACHE, ""),
            trace_cache=environment.get(TRACES, ""),
            keep=environment.get(KEEP, ""),
            batch_days=environment.get(BATCH_DAYS, ""),
        )

    @property
    def lake(self) -> LakeAddress | None:
        """The lake's address in an object store; None for a folder below the home. Raises: InvalidInputError."""
        return LakeAddress.of(self.lake_address, self.lake_cache) if self.lake_address else None

    @property
    def kept(self) -> KeepPolicy:
        """The policy of what is kept of samples of nodes; without it, everything. Raises: InvalidInputError."""
        return KeepPolicy.of(self.keep)

    @property
    def quota_bytes(self) -> int | None:
        """The bytes that the tokens of one user may send in a day; None for no limit. Raises: InvalidInputError."""
        return int(_number(QUOTA, self.quota, least=0.0)) if self.quota else None

    @property
    def trace_cache_bytes(self) -> int:
        """The bytes of traces once read that are kept in the home. Raises: InvalidInputError."""
        return int(_number(TRACES, self.trace_cache, least=0.0)) if self.trace_cache else TRACE_CACHE_BYTES

    @property
    def audit_kept_days(self) -> int:
        """The days for which the audit trail is kept. Raises: InvalidInputError."""
        return int(_number(AUDIT, self.audit_days, least=1.0)) if self.audit_days else AUDIT_KEPT_DAYS

    @property
    def batches_kept_days(self) -> int:
        """The days for which batches are remembered. Raises: InvalidInputError."""
        return days_of(self.batch_days)

    @property
    def intensity(self) -> CarbonIntensity | None:
        """The site's carbon intensity; None if it is not set. Raises: InvalidInputError naming the variable.

        It is parsed only where energy is reported, so that a wrong number does not prevent recording.
        """
        effectiveness = _number(PUE, self.pue, least=1.0) if self.pue else 1.0
        if not self.carbon_grams_per_kwh:
            return None
        return CarbonIntensity(_number(CARBON, self.carbon_grams_per_kwh, least=0.0), effectiveness)


def _number(variable: str, text: str, *, least: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not least <= value < math.inf:
        raise InvalidInputError(f"{variable} is {text!r:.40}, expected a finite number from {least:g} on")
    return value
