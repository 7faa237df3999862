"""Retransmission: collectives ran long with everybody there, and senders sent data again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed

SEGMENTS_LEAST, RETRIES_LEAST = 1.0, 0.1  # a step


@dataclass(frozen=True)
class Retransmission:
    """Claims the fabric's excess where TCP or RDMA sent again clearly more often than in the cohort.

    Source: RetransSegs (RFC 4022); local_ack_timeout_err, packet_seq_err, rnr_nak_retry_err
    (Documentation/ABI/stable/sysfs-class-infiniband).
    """

    name: ClassVar[str] = "retransmission"
    next_action: ClassVar[str] = (
        "Look for what delays or drops acknowledgements: ethtool -S, tc -s qdisc, a full receiver; for RoCE, flow "
        "control and ECN of the switches (dcb pfc show)."
    )
    columns: ClassVar[tuple[str, ...]] = ("fabric",)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """The fabric's time."""
        again = excess.stands_out("retransmits", least=SEGMENTS_LEAST)
        again |= excess.stands_out("retries", least=RETRIES_LEAST)
        return {"fabric": np.where(again, excess["fabric"], 0.0)}

    def evidence(self, observed: Observed) -> str:
        """Return what was sent again."""
        counts = [
            f"{observed.measured[name]:.3g} {what} a step, expected {observed.expected[name]:.3g}"
            for name, what in (("retransmits", "segments"), ("retries", "RDMA packets"))
            if not np.isnan(observed.excess(name))
        ]
        return f"sent again: {'; '.join(counts)}"
