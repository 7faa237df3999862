"""Faults that the lab injected into a run: the truth that explanations are judged by."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Injected:
    """One fault as it was really at work, from start to end in ns UTC; strength in the fault's own unit."""

    run_id: str
    kind: str
    strength: float
    unit: str
    node: str
    rank: int
    started_ns: int
    ended_ns: int


INJECTED_KEY = ("run_id", "kind", "node", "rank", "started_ns")
