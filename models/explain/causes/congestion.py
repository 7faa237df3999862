"""Congestion: collectives ran long with everybody there, and links or switches asked senders to wait."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed

# What it counts, and how much of it is the least that speaks for congestion.
SIGNS = {
    "pauses": ("pause frames or cycles a step", 1.0),
    "marks": ("congestion marks a step", 1.0),
    "port_waits": ("ticks a step that a port waited", 1000.0),
    "backlog": ("bytes queued before the links", 65536.0),
}


@dataclass(frozen=True)
class Congestion:
    """Claims the fabric's excess where pauses, marks, a port's waiting or queues rose clearly beyond the cohort's.

    Source: IEEE 802.1Qbb (pause frames); RFC 3168 (marks); InfiniBand Architecture Specification 1, PortXmitWait;
    tc-stats, `backlog` (tc(8), iproute2).
    """

    name: ClassVar[str] = "congestion"
    next_action: ClassVar[str] = (
        "Look at the switch ports of the run's nodes (ibdiagnet, ethtool -S) and at who else sends there; ask for "
        "nodes of one switch: #SBATCH --switches=1."
    )
    columns: ClassVar[tuple[str, ...]] = ("fabric",)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """The fabric's time."""
        is_asked = np.any([excess.stands_out(name, least=least) for name, (_, least) in SIGNS.items()], axis=0)
        return {"fabric": np.where(is_asked, excess["fabric"], 0.0)}

    def evidence(self, observed: Observed) -> str:
        """Return what asked senders to wait."""
        signs = [
            f"{observed.measured[name]:.3g} {what}, expected {observed.expected[name]:.3g}"
            for name, (what, _) in SIGNS.items()
            if not np.isnan(observed.excess(name))
        ]
        return "; ".join(signs)
