"""A limit on the rank's processor time."""

import time
from typing import ClassVar

from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.lab.hosts.cgroups import CpuGroups, Quota
from crosswind.ingest.lab.injectors.injector import Target


class CpuQuota:
    """A control group with a quota, around the rank's processes."""

    kind: ClassVar[str] = "cpu_quota"
    unit: ClassVar[str] = "% of a core"
    limits: ClassVar[tuple[float, float]] = (1.0, 6400.0)

    def __init__(self, groups: CpuGroups | None = None) -> None:
        self._groups = groups
        self._quota: Quota | None = None

    def start(self, target: Target, strength: float) -> int:
        """Put the rank's processes under the quota. Raises: UnavailableError."""
        if not target.pids:
            raise UnavailableError(f"rank {target.rank}: none of its processes is known")
        if self._quota is None:
            groups = self._groups or CpuGroups.mounted()
            self._quota = groups.limit(target.host.lab, target.pids, strength)
        return time.time_ns()

    def stop(self) -> int:
        """Put them, and those that they started, back into their groups. Raises: UnavailableError."""
        if self._quota is not None:
            self._quota.lift()
            self._quota = None
        return time.time_ns()
