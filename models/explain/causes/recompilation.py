"""Recompilation: in a few late steps the rank computed for many steps' time."""

from collections.abc import Mapping

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed
from crosswind.models.explain.evidence.indicators import InSegments


class Recompilation:
    """Claims user CPU time of the few segments that are outliers in it: a late compilation, or garbage collection."""

    name = "recompilation"
    next_action = (
        "Let shapes stay the same (pad, drop_last=True) or mark them: torch.compile(dynamic=True); "
        "TORCH_LOGS=recompiles tells why; gc.freeze() after the first steps."
    )
    columns = ("recompiled",)
    indicators = (InSegments("recompiled", lambda times: times.outlying(np.nan_to_num(times.last["cpu_user"]))),)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute of the few segments that are outliers in user time."""
        return {"compute": excess["recompiled"]}

    def evidence(self, observed: Observed) -> str:
        """Return user time of those steps."""
        measured, expected = observed.milliseconds("recompiled")
        few = f"{measured} of user CPU time a step lies in a few long steps"
        return f"{few}, expected {expected}"
