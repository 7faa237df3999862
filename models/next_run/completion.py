"""Facts that a question leaves out, from the runs of its cohort or its system."""

import math
from dataclasses import replace

from crosswind.data.devices.computing import computing_device
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.question import Question
from crosswind.models.next_run.cohort_store import Cohort, CohortStore


def completed(question: Question, cohorts: CohortStore, cohort: Cohort | None) -> Question:
    """Return the question with the facts of its cohort, else of the newest run on its system, and with a date.

    A question that names another device than these gets none of them. Without a date it is of the newest run's.
    """
    earlier = cohort.question if cohort else cohorts.newest_on.get(question.system)
    facts = question.facts
    if earlier is not None and not names_other_device(question, earlier):
        facts = facts.over(_at_scale(earlier, question.world_size))
    if facts.accelerators is None and facts.accelerator is not None and facts.accelerators_per_node != 0:
        facts = replace(facts, accelerators=question.world_size)
    nodes = question.node_count or facts.node_count or _nodes(facts)
    nodes = None if nodes is None else min(nodes, question.world_size)
    started_ns = cohorts.newest_ns if question.started_ns is None else question.started_ns
    return replace(question, facts=facts, node_count=nodes, started_ns=started_ns)


def names_other_device(question: Question, earlier: Question) -> bool:
    """Return whether the question names a device, and earlier runs had another one."""
    asked, had = device_of(question), device_of(earlier)
    return bool(asked and had) and asked != had


def device_of(question: Question) -> str:
    """Return the name of the device that computes, empty where it is not known."""
    return computing_device(question.facts, question.configuration)


def _at_scale(earlier: Question, world_size: int) -> Facts:
    """The facts of earlier ranks, with so many accelerators as that many ranks have."""
    facts = earlier.facts
    if world_size == earlier.world_size or (facts.accelerators is None and facts.node_count is None):
        return facts
    ratio = None if facts.accelerators is None else facts.accelerators / earlier.world_size
    return replace(facts, accelerators=None if ratio is None else max(1, round(ratio * world_size)), node_count=None)


def _nodes(facts: Facts) -> int | None:
    if not facts.accelerators or not facts.accelerators_per_node:
        return None
    return math.ceil(facts.accelerators / facts.accelerators_per_node)
