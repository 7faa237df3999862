"""Busy loaders: the last rank waited for its batch while tasks of its job waited for cores."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, milliseconds, where_it_fills


@dataclass(frozen=True)
class BusyLoaders:
    """Claims the input phase, as far as some task of the job waited longer for a core (PSI): workers that decode.

    Source: Documentation/accounting/psi.rst.
    """

    name: ClassVar[str] = "busy_loaders"
    next_action: ClassVar[str] = (
        "Give the loaders cores (#SBATCH --cpus-per-task=...; DataLoader(num_workers=cores - 1)), or decode less: "
        "smaller images, prepared files, a GPU decoder."
    )
    columns: ClassVar[tuple[str, ...]] = ("cpu_waited",)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """The input phase."""
        return {"input": where_it_fills(excess, "cpu_waited", "input")}

    def evidence(self, observed: Observed) -> str:
        """For how long tasks waited for a core."""
        measured, expected = observed.measured["cpu_waited"], observed.expected["cpu_waited"]
        return f"tasks of the job waited {milliseconds(measured)} a step for a core, expected {milliseconds(expected)}"
