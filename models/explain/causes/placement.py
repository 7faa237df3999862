"""Placement: runs spread over nodes and switches as this one take longer than the others of their cohort."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.cause import Excess, Observed, beyond_usual
from crosswind.models.explain.evidence.indicators import ComparedRun, RunsAlike


def placements(runs: Sequence[ComparedRun]) -> list[tuple[object, ...]]:
    """Return for each run how many ranks share a node, and a leaf switch where all of them are recorded."""
    if not all(node in compared.switches for compared in runs for node in compared.nodes.values()):
        return [_sizes(compared.nodes.values()) for compared in runs]
    return [_sizes_by_switch(compared) if compared.nodes else () for compared in runs]


def _sizes_by_switch(compared: ComparedRun) -> tuple[object, ...]:
    nodes = compared.nodes.values()
    return _sizes(nodes), _sizes([compared.switches[node] for node in nodes])


def _sizes(places: Collection[str]) -> tuple[int, ...]:
    return tuple(sorted(Counter(places).values()))


PLACEMENT = RunsAlike("placement", placements)


class Placement:
    """Claims by how much other runs with as many ranks on each node and switch lie above the usual time, by phase."""

    name = "placement"
    next_action = (
        "Ask for the placement of the quicker runs: #SBATCH --nodes=N --ntasks-per-node=M, --switches=1; "
        "torchrun --nnodes=N --nproc-per-node=M."
    )
    columns = ("compute", "fabric")
    indicators = (PLACEMENT,)

    def claims(self, excess: Excess) -> Mapping[str, Floats]:
        """Claim compute and the fabric's time, where the difference is more than runs alike differ by."""
        return beyond_usual(excess, PLACEMENT)

    def evidence(self, observed: Observed) -> str:
        """Return the time that runs alike take."""
        measured, expected = observed.milliseconds(*PLACEMENT.columns)
        return f"other runs spread over nodes and switches in the same way take {measured} a step, expected {expected}"
