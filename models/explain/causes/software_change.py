"""Software: runs with this run's versions take longer than the others of their cohort."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, by_runs_alike, told_by_runs_alike

ALIKE = "other runs with the same software"


@dataclass(frozen=True)
class SoftwareChange:
    """Claims by how much other runs with the same software lie above the cohort's usual time, phase by phase."""

    name: ClassVar[str] = "software_change"
    next_action: ClassVar[str] = (
        "Compare the software of this run with that of a quicker one (crosswind compare RUN OTHER) and pin the "
        "versions that were quicker."
    )
    columns: ClassVar[tuple[str, ...]] = ("compute", "fabric")

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Compute and the fabric's time, where the difference is more than runs that are alike differ by."""
        return by_runs_alike(excess, "software")

    def evidence(self, observed: Observed) -> str:
        """Return what runs that are alike take."""
        return f"{ALIKE} {told_by_runs_alike(observed, 'software')}"
