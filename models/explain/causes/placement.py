"""Placement: runs spread over nodes and switches as this one take longer than the others of their cohort."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, by_runs_alike, told_by_runs_alike

ALIKE = "other runs spread over nodes and switches in the same way"


@dataclass(frozen=True)
class Placement:
    """Claims by how much other runs with as many ranks on each node and switch lie above the usual time, by phase."""

    name: ClassVar[str] = "placement"
    next_action: ClassVar[str] = (
        "Ask for the placement of the quicker runs: #SBATCH --nodes=N --ntasks-per-node=M, --switches=1; "
        "torchrun --nnodes=N --nproc-per-node=M."
    )
    columns: ClassVar[tuple[str, ...]] = ("compute", "fabric")

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Compute and the fabric's time, where the difference is more than runs that are alike differ by."""
        return by_runs_alike(excess, "placement")

    def evidence(self, observed: Observed) -> str:
        """Return what runs that are alike take."""
        return f"{ALIKE} {told_by_runs_alike(observed, 'placement')}"
