"""Major page faults: the rank's thread waited for a disk to bring a page of a file."""

from collections.abc import Mapping

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed

FAULTS_LEAST = 1.0  # a step


class MajorFaults:
    """Claims idle time of compute where the loop's thread had clearly more major faults than in the cohort.

    Source: getrusage(2), ru_majflt.
    """

    name = "major_faults"
    next_action = (
        "Read mapped files once before training (vmtouch -t, cat FILE > /dev/null), or copy them into memory; leave "
        "room for the file cache: #SBATCH --mem=..."
    )
    columns = ("compute",)
    indicators = ()

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute in which the rank was idle."""
        faulted = excess.is_beyond_usual("major_faults", least=FAULTS_LEAST)
        return {"compute": np.where(faulted, excess.idle, 0.0)}

    def evidence(self, observed: Observed) -> str:
        """Return the faults of the loop's thread."""
        measured, expected = observed.measured["major_faults"], observed.expected["major_faults"]
        return f"its thread waited for a disk in {measured:.3g} page faults a step, expected {expected:.3g}"
