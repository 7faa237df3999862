"""Software: runs with this run's versions take longer than the others of their cohort."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crosswind.data.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, milliseconds

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
        return {phase: self._beyond(excess, f"software_{phase}") for phase in ("compute", "fabric")}

    def evidence(self, observed: Observed) -> str:
        """What runs that are alike take."""
        measured, expected = (
            each["software_compute"] + each["software_fabric"] for each in (observed.measured, observed.expected)
        )
        return f"{ALIKE} take {milliseconds(measured)} a step, expected {milliseconds(expected)}"

    @staticmethod
    def _beyond(excess: Excess, column: str) -> Floats:
        return np.where(excess.stands_out(column, least=0.0), excess[column], 0.0)
