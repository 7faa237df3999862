"""Packet loss: collectives ran long with everybody there, and segments came out of order or after a timeout."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed

OUT_OF_ORDER_LEAST, TIMEOUTS_LEAST = 0.1, 0.01  # a step


@dataclass(frozen=True)
class PacketLoss:
    """Claims the fabric's excess where TCP met gaps in what it received clearly more often than in the cohort.

    A lost segment leaves those behind it out of order; the last one of a burst is missed by a timeout alone.
    Source: TCPOFOQueue and TCPTimeouts of /proc/net/netstat (Documentation/networking/snmp_counter.rst).
    """

    name: ClassVar[str] = "packet_loss"
    next_action: ClassVar[str] = "Look for a bad cable, port or a full switch buffer between the run's nodes."
    columns: ClassVar[tuple[str, ...]] = ("fabric",)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """The fabric's time."""
        has_gaps = excess.stands_out("out_of_order", least=OUT_OF_ORDER_LEAST)
        is_lossy = has_gaps | excess.stands_out("timeouts", least=TIMEOUTS_LEAST)
        return {"fabric": np.where(is_lossy, excess["fabric"], 0.0)}

    def evidence(self, observed: Observed) -> str:
        """Segments out of order, and timeouts."""
        measured, expected = observed.measured["out_of_order"], observed.expected["out_of_order"]
        timeouts = f"{observed.measured['timeouts']:.2g} timeouts"
        return f"{measured:.3g} segments a step came out of order, expected {expected:.3g}; {timeouts} a step"
