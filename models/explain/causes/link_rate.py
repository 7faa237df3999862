"""Link rate: collectives ran long with everybody there, and a queueing discipline held packets back."""

from collections.abc import Mapping

import numpy as np

from crosswind.data.schema.prediction import Floats
from crosswind.models.conditions.reading import Over
from crosswind.models.explain.causes.cause import Excess, Observed
from crosswind.models.explain.evidence.indicators import Sampled
from crosswind.models.explain.evidence.rate import Rate

OVERLIMITS_LEAST = 1.0  # a step
OVERLIMITS = Sampled("overlimits", (Rate("qdisc", ("overlimits_total",), Over.SUM),), on_links=True)


class LinkRate:
    """Claims the fabric's excess where packets met a rate limit clearly more often than in the cohort.

    Source: tc-stats, `overlimits` (tc(8), iproute2).
    """

    name = "link_rate"
    next_action = "Look at the rate limit and the speed of the links of the run's nodes: tc -s qdisc, ethtool."
    columns = ("fabric",)
    indicators = (OVERLIMITS,)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim the fabric's time."""
        is_limited = excess.is_beyond_usual("overlimits", least=OVERLIMITS_LEAST)
        return {"fabric": np.where(is_limited, excess["fabric"], 0.0)}

    def evidence(self, observed: Observed) -> str:
        """Return the packets held back."""
        measured, expected = observed.measured["overlimits"], observed.expected["overlimits"]
        return f"{measured:.3g} packets a step met a rate limit, expected {expected:.3g}"
