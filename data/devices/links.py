"""Families of networks between nodes, as texts that describe a system name them."""

import re
from functools import lru_cache

# Searched in the lower-case text; the first match decides. A ConnectX adapter alone names neither of its two networks.
_FAMILIES: tuple[tuple[str, str], ...] = (
    (r"roce", "ethernet"),  # the kernel gives its rate in InfiniBand's words, too
    (r"\bxdr", "infiniband xdr"),
    (r"\bndr|infiniband.*400 ?g|400 ?g.*infiniband", "infiniband ndr"),
    (r"\bhdr|infiniband.*200 ?g|200 ?g.*infiniband", "infiniband hdr"),
    (r"\bedr|infiniband.*100 ?g|100 ?g.*infiniband", "infiniband edr"),
    (r"\bfdr", "infiniband fdr"),
    (r"\bqdr", "infiniband qdr"),
    (r"infiniband|\bib\b", "infiniband"),
    (r"slingshot.?11", "slingshot 11"),
    (r"slingshot", "slingshot"),
    (r"aries", "aries"),
    (r"tofu", "tofu"),
    (r"omni.?path|\bopa\b", "omni-path"),
    (r"\befa\b|elastic fabric", "efa"),
    (r"\bici\b|torus|tpu", "ici"),
    (r"ethernet|gbe\b|\bgige\b", "ethernet"),
    (r"nvlink|nvswitch", "nvlink"),
)


@lru_cache(maxsize=1024)  # few descriptions recur, in every question of a batch
def network_named(text: str) -> str | None:
    """Return the family and generation of a network that a system's description names, None where it names none."""
    lowered = text.lower()
    return next((family for pattern, family in _FAMILIES if re.search(pattern, lowered)), None)
