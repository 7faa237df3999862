"""The state of a cohort."""

from dataclasses import dataclass, replace

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.spread.level import level_of


@dataclass(frozen=True)
class CohortState:
    """A cohort's runs in log seconds without the effect of conditions, oldest first, and their spread.

    `scale` multiplies the quantiles of all cohorts. `modes` are its own quantiles where its runs have two modes,
    `corrections` its own conformal ones where it has enough runs; both at LEVELS, else None.
    """

    logs: Floats
    scale: float = 1.0
    drifts: bool = False
    modes: Floats | None = None
    corrections: Floats | None = None

    @property
    def level(self) -> float:
        """The usual time in log seconds; NaN before the first run."""
        return level_of(self.logs, drifts=self.drifts) if len(self.logs) else float(np.nan)

    def shape(self, quantiles: Floats, shift: float) -> Floats:
        """Quantiles around the level in units of the scale: those of all cohorts, or its own."""
        own = quantiles if self.modes is None else shift + self.modes
        return own if self.corrections is None else np.sort(own + self.corrections)


def state_after(state: CohortState | None, log_seconds: float, shift: float) -> CohortState:
    """Return the state after one more run, shifted by conditions by `shift` in units of the scale."""
    before = CohortState(np.empty(0)) if state is None else state
    return replace(before, logs=np.append(before.logs, log_seconds - before.scale * shift))
