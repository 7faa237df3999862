"""Retransmission: collectives ran long with everybody there, and senders sent data again."""

from collections.abc import Mapping

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed
from crosswind.models.explain.evidence.indicators import Sampled
from crosswind.models.explain.evidence.rate import Rate

SEGMENTS_LEAST, RETRIES_LEAST = 1.0, 0.1  # a step
RETRANSMITS = Sampled(
    "retransmits", (Rate("protocol", ("retransmitted_segments_total",), device="tcp"),), on_links=True
)
INFINIBAND_RETRIES = (
    *("local_ack_timeout_err_total", "packet_seq_err_total", "rnr_nak_retry_err_total", "roce_adp_retrans_total"),
    *("to_retransmits_total", "retrans_pkts_total", "retransmitted_segments_total"),
)
CXI_RETRIES = ("pct_retry_srb_requests_total", "hni_llr_tx_replay_total")
RETRIES = Sampled(
    "retries",
    (
        *(Rate("infiniband", (column,)) for column in INFINIBAND_RETRIES),
        *(Rate("cxi", (column,)) for column in CXI_RETRIES),
    ),
    on_links=True,
)


class Retransmission:
    """Claims the fabric's excess where TCP or RDMA sent again clearly more often than in the cohort.

    Source: RetransSegs (RFC 4022); local_ack_timeout_err, packet_seq_err, rnr_nak_retry_err
    (Documentation/ABI/stable/sysfs-class-infiniband).
    """

    name = "retransmission"
    next_action = (
        "Look for what delays or drops acknowledgements: ethtool -S, tc -s qdisc, a full receiver; for RoCE, flow "
        "control and ECN of the switches (dcb pfc show)."
    )
    columns = ("fabric",)
    indicators = (RETRANSMITS, RETRIES)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim the fabric's time."""
        again = excess.is_beyond_usual("retransmits", least=SEGMENTS_LEAST)
        again |= excess.is_beyond_usual("retries", least=RETRIES_LEAST)
        return {"fabric": np.where(again, excess["fabric"], 0.0)}

    def evidence(self, observed: Observed) -> str:
        """Return how much was sent again."""
        counts = [
            f"{observed.measured[name]:.3g} {unit} a step, expected {observed.expected[name]:.3g}"
            for name, unit in (("retransmits", "segments"), ("retries", "RDMA packets"))
            if not np.isnan(observed.excess(name))
        ]
        return f"sent again: {'; '.join(counts)}"
