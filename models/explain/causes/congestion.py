"""Congestion: collectives ran long with everybody there, and links or switches asked senders to wait."""

from collections.abc import Mapping

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.conditions.reading import Over
from crosswind.models.explain.causes.cause import Excess, Observed
from crosswind.models.explain.evidence.indicators import Sampled
from crosswind.models.explain.evidence.rate import Rate

# By column its unit, and the least that speaks for congestion.
SIGNS = {
    "pauses": ("pause frames or cycles a step", 1.0),
    "marks": ("congestion marks a step", 1.0),
    "port_waits": ("ticks a step that a port waited", 1000.0),
    "backlog": ("bytes queued before the links", 65536.0),
}
# Frames that ask a sender to stop; the driver counts durations and transitions under names of their own.
PAUSE_FRAMES = "statistic like 'rx%pause%' and statistic not like '%duration%' and statistic not like '%transition%'"
CXI_PAUSES = tuple(f"hni_rx_paused_tc{number}_cycles_total" for number in range(8))
PAUSES = Sampled(
    "pauses",
    (Rate("ethtool", ("value_total",), only=PAUSE_FRAMES, asks=("statistic",)), Rate("cxi", CXI_PAUSES)),
    on_links=True,
)
PORT_WAITS = Sampled("port_waits", (Rate("infiniband", ("transmit_wait_total",)),), on_links=True)
INFINIBAND_MARKS = ("rp_cnp_handled_total", "cnp_received_total", "np_ecn_marked_roce_packets_total")
MARKS = Sampled(
    "marks",
    (
        *(Rate("infiniband", (column,)) for column in INFINIBAND_MARKS),
        Rate("protocol", ("delivered_marked_segments_total",), device="tcp"),
    ),
    on_links=True,
)
BACKLOG = Sampled("backlog", (Rate("qdisc", ("backlog_bytes",), Over.SUM),), on_links=True)


class Congestion:
    """Claims the fabric's excess where pauses, marks, a port's waiting or queues rose clearly beyond the cohort's.

    Source: IEEE 802.1Qbb (pause frames); RFC 3168 (marks); InfiniBand Architecture Specification 1, PortXmitWait;
    tc-stats, `backlog` (tc(8), iproute2).
    """

    name = "congestion"
    next_action = (
        "Look at the switch ports of the run's nodes (ibdiagnet, ethtool -S) and at who else sends there; ask for "
        "nodes of one switch: #SBATCH --switches=1."
    )
    columns = ("fabric",)
    indicators = (PAUSES, PORT_WAITS, MARKS, BACKLOG)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim the fabric's time."""
        is_asked = np.any([excess.is_beyond_usual(name, least=least) for name, (_, least) in SIGNS.items()], axis=0)
        return {"fabric": np.where(is_asked, excess["fabric"], 0.0)}

    def evidence(self, observed: Observed) -> str:
        """Return the signs that asked senders to wait."""
        counts = [
            f"{observed.measured[name]:.3g} {unit}, expected {observed.expected[name]:.3g}"
            for name, (unit, _) in SIGNS.items()
            if not np.isnan(observed.excess(name))
        ]
        return "; ".join(counts)
