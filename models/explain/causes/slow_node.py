"""Slow node: the node of the last rank is slower than its peers in other runs, too."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, at_most, milliseconds


@dataclass(frozen=True)
class SlowNode:
    """Claims compute in proportion to the node's shrunken effect on its ranks, where it is named a straggler.

    Source: models/stragglers/effects.py.
    """

    name: ClassVar[str] = "slow_node"
    next_action: ClassVar[str] = (
        "Leave the node out (#SBATCH --exclude=NODE; crosswind stragglers names it) and have it tested: clocks, memory "
        "channels, firmware settings."
    )
    columns: ClassVar[tuple[str, ...]] = ("slow_node",)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Compute, where the rank did not wait for a core."""
        return {"compute": at_most(excess["slow_node"], excess.work)}

    def evidence(self, observed: Observed) -> str:
        """Return what the node costs."""
        measured, expected = observed.measured["slow_node"], observed.expected["slow_node"]
        usual = f"its node is a straggler in this cohort's runs: {milliseconds(measured)} a step"
        return f"{usual}, expected {milliseconds(expected)}"
