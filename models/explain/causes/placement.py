"""Placement: runs spread over nodes as this one take longer than the others of their cohort."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crosswind.data.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, milliseconds

ALIKE = "other runs spread over nodes in the same way"


@dataclass(frozen=True)
class Placement:
    """Claims by how much other runs with as many ranks on each node lie above the cohort's usual time, by phase."""

    name: ClassVar[str] = "placement"
    next_action: ClassVar[str] = (
        "Ask for the placement of the quicker runs: #SBATCH --nodes=N --ntasks-per-node=M, --switches=1; "
        "torchrun --nnodes=N --nproc-per-node=M."
    )
    columns: ClassVar[tuple[str, ...]] = ("compute", "fabric")

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Compute and the fabric's time, where the difference is more than runs that are alike differ by."""
        return {phase: self._beyond(excess, f"placement_{phase}") for phase in ("compute", "fabric")}

    def evidence(self, observed: Observed) -> str:
        """What runs that are alike take."""
        measured, expected = (
            each["placement_compute"] + each["placement_fabric"] for each in (observed.measured, observed.expected)
        )
        return f"{ALIKE} take {milliseconds(measured)} a step, expected {milliseconds(expected)}"

    @staticmethod
    def _beyond(excess: Excess, column: str) -> Floats:
        return np.where(excess.stands_out(column, least=0.0), excess[column], 0.0)
