"""Rows that came into the lake: of which runs, or of which nodes and when."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Landing:
    """Rows of one metric set; `run_ids` where they say whose they are, else the nodes that they were sampled on.

    `first_ns` and `last_ns` are the times of the first and the last row, ns UTC. `steps` is by run the highest step
    that has rows; `checks` are the ids of checks that were measured on `system`.
    """

    first_ns: int
    last_ns: int
    run_ids: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()
    steps: Mapping[str, int] = field(default_factory=dict)
    checks: frozenset[str] = frozenset()
    system: str | None = None
