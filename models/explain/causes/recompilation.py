"""Recompilation: in a few late steps the rank computed for many steps' time."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, milliseconds


@dataclass(frozen=True)
class Recompilation:
    """Claims user CPU time of the few segments that stand out by it: a late compilation, or garbage collection."""

    name: ClassVar[str] = "recompilation"
    next_action: ClassVar[str] = (
        "Let shapes stay the same (pad, drop_last=True) or mark them: torch.compile(dynamic=True); "
        "TORCH_LOGS=recompiles tells why; gc.freeze() after the first steps."
    )
    columns: ClassVar[tuple[str, ...]] = ("recompiled",)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Compute of the few segments that stand out by user time."""
        return {"compute": excess["recompiled"]}

    def evidence(self, observed: Observed) -> str:
        """User time of those steps."""
        measured, expected = observed.measured["recompiled"], observed.expected["recompiled"]
        few = f"{milliseconds(measured)} of user CPU time a step lies in a few long steps"
        return f"{few}, expected {milliseconds(expected)}"
