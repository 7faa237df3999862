"""All measures of a check, in their order."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from crosswind.data.schema.checks import Measured
from crosswind.data.schema.errors import InvalidInputError
from crosswind.ingest.preflight.disk import Disk
from crosswind.ingest.preflight.gemm import Gemm
from crosswind.ingest.preflight.loop import Loop
from crosswind.ingest.preflight.measure import NodeMeasure
from crosswind.ingest.preflight.memory import Memory
from crosswind.ingest.preflight.network import all_reduces, pairs
from crosswind.ingest.preflight.peers import Peers

NODE_MEASURES: tuple[NodeMeasure, ...] = (Loop(), Gemm(), Memory(), Disk())
NETWORK_MEASURES: Mapping[str, Callable[[Peers, float], Iterator[Measured]]] = {
    "pairs": pairs,
    "allreduce": all_reduces,
}
NETWORK_WEIGHT = 2.0
WEIGHTS: Mapping[str, float] = {
    **{measure.name: measure.weight for measure in NODE_MEASURES},
    **dict.fromkeys(NETWORK_MEASURES, NETWORK_WEIGHT),
}


def chosen(only: str | None) -> tuple[str, ...]:
    """Return the measures that `--only a,b` names, in their own order; all without it. Raises: InvalidInputError."""
    if only is None:
        return tuple(WEIGHTS)
    wanted = [word.strip() for word in only.split(",")]
    unknown = [word for word in wanted if word not in WEIGHTS]
    if unknown:
        raise InvalidInputError(f"--only {unknown[0][:40]!r}: expected some of {','.join(WEIGHTS)}")
    return tuple(name for name in WEIGHTS if name in wanted)


def shares(names: Sequence[str], seconds: float) -> dict[str, float]:
    """Return the seconds for each of these, which sum to `seconds`."""
    total = sum(WEIGHTS[name] for name in names)
    return {name: seconds * WEIGHTS[name] / total for name in names}
