"""Stall: once or a few times, the rank neither ran nor waited for a core, or everybody waited and nothing moved."""

from collections.abc import Mapping

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed
from crosswind.models.explain.evidence.indicators import InSegments


class Stall:
    """Claims the idle time of the few segments that are outliers in it: a stopped process, a hung file system."""

    name = "stall"
    next_action = "Look at that time in the node's log: a stopped process, a hung file system, a device reset."
    columns = ("stalled", "stalled_fabric")
    indicators = (
        InSegments("stalled", lambda times: times.outlying(np.nan_to_num(times.idle))),
        InSegments("stalled_fabric", lambda times: times.outlying(times.last["fabric"]), of_all_ranks=True),
    )

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute in which nothing was computed, and the fabric."""
        return {"compute": excess["stalled"], "fabric": excess["stalled_fabric"]}

    def evidence(self, observed: Observed) -> str:
        """Return for how long nothing went on."""
        measured, expected = observed.milliseconds(*self.columns)
        return f"nothing went on for {measured} a step, in a few steps; expected {expected}"
