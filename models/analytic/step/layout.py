"""The groups of ranks that communicate, and the links they use.

Ranks of a tensor group are neighbours, data groups come next, pipeline stages last, as in Megatron-LM (Narayanan et al.
2021, section 3): ranks that communicate most are nearest.
"""

from crosswind.models.analytic.machine.collectives import Group
from crosswind.models.analytic.machine.links import Link
from crosswind.models.analytic.machine.machine import Machine
from crosswind.models.analytic.step.plan import Plan


def tensor_group(plan: Plan, machine: Machine) -> Group:
    """The ranks that share the layers of a stage; a group larger than a node has its nodes' connections alone."""
    return Group(plan.tensor, min(plan.tensor, _on_node(plan)), machine.inside_link, machine.between_link)


def data_group(plan: Plan, machine: Machine) -> Group:
    """The ranks that hold the same weights; those of a node's tensor ranks reduce at the same time."""
    neighbours = min(plan.tensor, _on_node(plan))
    here = min(plan.data, max(1, _on_node(plan) // plan.tensor))
    return Group(plan.data, here, machine.inside_link, machine.between_link, sharers=neighbours)


def stage_link(plan: Plan, machine: Machine) -> Link:
    """The link from a rank to that of the next stage; all ranks of a node send at once where stages span nodes.

    Over the network a message has the rate of collectives; within a node it is one copy, at another rate.
    """
    on_node = _on_node(plan)
    if plan.tensor * plan.data >= on_node:
        return machine.between_link.shared_by(on_node)
    reached = machine.inside.bytes_per_second * machine.constants.transfer_efficiency
    return Link(machine.inside_link.alpha_seconds, reached)


def _on_node(plan: Plan) -> int:
    return min(plan.ranks_a_node, plan.ranks)
