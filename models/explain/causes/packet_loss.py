"""Packet loss: collectives ran long with everybody there, and segments came out of order or after a timeout."""

from collections.abc import Mapping

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed
from crosswind.models.explain.causes.retransmission import RETRANSMITS
from crosswind.models.explain.evidence.indicators import Sampled
from crosswind.models.explain.evidence.rate import Rate

OUT_OF_ORDER_LEAST, TIMEOUTS_LEAST = 0.1, 0.01  # a step
OUT_OF_ORDER = Sampled(
    "out_of_order", (Rate("protocol", ("out_of_order_segments_total",), device="tcp"),), on_links=True
)
TIMEOUTS = Sampled(
    "timeouts", (Rate("protocol", ("retransmit_timeouts_total",), device="tcp"),), on_links=True, locates=False
)


class PacketLoss:
    """Claims the fabric's excess where TCP met gaps in what it received clearly more often than in the cohort.

    A lost segment leaves those behind it out of order; the last one of a burst is missed by a timeout alone.
    Source: TCPOFOQueue and TCPTimeouts of /proc/net/netstat (Documentation/networking/snmp_counter.rst).
    """

    name = "packet_loss"
    next_action = "Look for a bad cable, port or a full switch buffer between the run's nodes."
    columns = ("fabric",)
    indicators = (OUT_OF_ORDER, TIMEOUTS, RETRANSMITS)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim the fabric's time."""
        has_gaps = excess.is_beyond_usual("out_of_order", least=OUT_OF_ORDER_LEAST)
        is_lossy = has_gaps | excess.is_beyond_usual("timeouts", least=TIMEOUTS_LEAST)
        return {"fabric": np.where(is_lossy, excess["fabric"], 0.0)}

    def evidence(self, observed: Observed) -> str:
        """Return the segments out of order, and timeouts."""
        measured, expected = observed.measured["out_of_order"], observed.expected["out_of_order"]
        timeouts = f"{observed.measured['timeouts']:.2g} timeouts"
        return f"{measured:.3g} segments a step came out of order, expected {expected:.3g}; {timeouts} a step"
