"""The run on an ideal network, estimated from a replay: for POP's serialisation and transfer."""

from crosswind.models.traces.graph.graph import Graph
from crosswind.models.traces.pop import IdealNetwork, Pop
from crosswind.models.traces.what_if.causes import communication_free
from crosswind.models.traces.what_if.what_if import what_if


def on_ideal_network(pop: Pop, graph: Graph) -> Pop:
    """Return the metrics with serialisation and transfer estimated: what free transfers save is the transfer's loss."""
    replay = what_if(graph, communication_free)
    saved = min(replay.measured_ns - replay.replayed_ns, pop.runtime_ns - max(pop.useful_ns))
    return pop.on(IdealNetwork(pop.runtime_ns - saved))
