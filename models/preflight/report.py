"""All that a check has to say."""

from dataclasses import dataclass

from crosswind.data.schema.checks import Measured
from crosswind.models.preflight.verdict import Verdict


@dataclass(frozen=True)
class Report:
    """A check: what was measured, what that is worth, and Slurm's option that leaves the slow nodes out."""

    check_id: str
    system: str
    began_ns: int
    seconds: float
    method: str  # what carried messages; empty where each node was alone
    ranks: int
    nodes: tuple[str, ...]
    measured: tuple[Measured, ...]
    verdict: Verdict
    exclude: str  # empty when nobody is to be left out
    notes: tuple[str, ...]
    job_id: str | None = None
