"""The course of a check on one of its ranks."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from crosswind.data.schema.checks import Measured
from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.preflight.measure import Bench, NodeMeasure
from crosswind.ingest.preflight.measures import NETWORK_MEASURES, NODE_MEASURES, shares
from crosswind.ingest.preflight.network import leaders
from crosswind.ingest.preflight.peers import Peers

GATHER_SECONDS = 20.0  # after rank 0 is done; the ranks go in step until then


@dataclass(frozen=True)
class Failed:
    """A measure that a node could not take, and why."""

    node: str
    measure: str
    reason: str


@dataclass(frozen=True)
class Checked:
    """The measurements of all ranks."""

    nodes: tuple[str, ...]
    measured: tuple[Measured, ...]
    failed: tuple[Failed, ...]


def check(peers: Peers, names: Sequence[str], folder: Path, seconds: float) -> Checked | None:
    """Measure with all other ranks for about `seconds`. Return all results on rank 0, None on the others.

    Nodes measure the same at the same time. A failure on one node is reported, and the rest goes on.
    Raises: UnavailableError naming ranks whose results do not come.
    """
    budget = shares(_possible(peers, names), seconds)
    measured: list[Measured] = []
    failed: list[Failed] = []
    try:
        for name, part in budget.items():
            for outcome in _one(peers, name, Bench(peers.place.node, folder, part)):
                (failed if isinstance(outcome, Failed) else measured).append(outcome)  # type: ignore[arg-type]
    except UnavailableError as error:  # a rank is gone; the others' results still count
        failed.append(Failed(peers.place.node, "network", str(error)))
    results = {
        "measured": [asdict(measurement) for measurement in measured],
        "failed": [asdict(failure) for failure in failed],
    }
    gathered = peers.gather(results, GATHER_SECONDS)
    if gathered is None:
        return None
    return Checked(
        tuple(dict.fromkeys(peers.nodes)),
        tuple(Measured(**entry) for of_rank in gathered for entry in of_rank["measured"]),
        tuple(Failed(**entry) for of_rank in gathered for entry in of_rank["failed"]),
    )


def _possible(peers: Peers, names: Sequence[str]) -> list[str]:
    """Return the measures for which there are enough nodes and ranks."""
    least = {"pairs": len(set(peers.nodes)), "allreduce": peers.place.world_size}
    return [name for name in names if least.get(name, 2) > 1]


def _one(peers: Peers, name: str, bench: Bench) -> Iterator[Measured | Failed]:
    if name in NETWORK_MEASURES:
        yield from NETWORK_MEASURES[name](peers, bench.seconds)
        return
    peers.go_on(wanted=True)  # all begin at once
    if peers.place.rank in leaders(tuple(peers.nodes)):
        yield from _of_node(next(measure for measure in NODE_MEASURES if measure.name == name), bench)


def _of_node(measure: NodeMeasure, bench: Bench) -> Iterator[Measured | Failed]:
    try:
        yield from measure.measure(bench)
    except (UnavailableError, OSError, MemoryError, RuntimeError) as error:  # PyTorch's errors are of the last kind
        reason = str(error) or type(error).__name__
        yield Failed(bench.node, measure.name, reason.splitlines()[0][:300])
