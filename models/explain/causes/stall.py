"""Stall: once or a few times, the rank neither ran nor waited for a core, or everybody waited and nothing moved."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, milliseconds


@dataclass(frozen=True)
class Stall:
    """Claims the idle time of the few segments that stand out by it: a stopped process, a hung file system."""

    name: ClassVar[str] = "stall"
    next_action: ClassVar[str] = (
        "Look at that time in the node's log: a stopped process, a hung file system, a device reset."
    )
    columns: ClassVar[tuple[str, ...]] = ("stalled", "stalled_fabric")

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Compute in which nothing was computed, and the fabric."""
        return {"compute": excess["stalled"], "fabric": excess["stalled_fabric"]}

    def evidence(self, observed: Observed) -> str:
        """For how long nothing went on."""
        measured, expected = (
            sum(values[name] for name in self.columns) for values in (observed.measured, observed.expected)
        )
        return f"nothing went on for {milliseconds(measured)} a step, in a few steps; expected {milliseconds(expected)}"
