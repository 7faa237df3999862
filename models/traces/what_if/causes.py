"""Causes that a replay takes out, each a function of the graph.

A rank's own work, in kernels and on the host, is scaled to that of others in the same part of the run: between two
collectives for ranks, in a step for stages and sequences. Waits and transfers are what the replay makes of it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.traces.trace import Codes, Integers
from crosswind.models.traces.graph.graph import Floats, Graph, Work, Works
from crosswind.models.traces.ranks import text_of
from crosswind.models.traces.what_if.what_if import Cause, Change

DEVICE, HOST = (Work.COMPUTE, Work.COPY), (Work.HOST, Work.OPERATOR)
COMPUTE = (Work.COMPUTE, Work.OPERATOR)


def nothing(_graph: Graph) -> Change:
    """Take nothing out: the replay gives what was measured."""
    return Change("nothing", lambda _, works: np.ones(len(works)))


def rank_as_peers(rank: int, stages: Mapping[int, int] | None = None) -> Cause:
    """Give a rank the median work of the others of its stage, all of them without stages.

    Raises: InvalidInputError for a rank that is not traced, or one without peers.
    """

    def change(graph: Graph) -> Change:
        peers = peers_of(graph, rank, stages)
        if rank not in graph.ranks or not peers:
            raise InvalidInputError(f"rank {rank}: not among {text_of(graph.ranks)}, or without others to compare with")
        mine, others = graph.ranks.index(rank), [graph.ranks.index(one) for one in peers]
        sides = [graph.ns_by_part[:, :, works].sum(axis=2) for works in (DEVICE, HOST)]
        factors = [np.ones_like(totals) for totals in sides]
        for factor, totals in zip(factors, sides, strict=True):
            factor[mine] = _by(np.median(totals[others], axis=0), totals[mine])
        return _scaled(graph, f"{text_of([rank])} slower than {text_of(peers)}", factors, graph.activities.part)

    return change


def stage_balanced(stages: Mapping[int, int]) -> Cause:
    """Give each stage of a pipeline the mean computation of all stages, step by step.

    Raises: InvalidInputError when a traced rank has no stage.
    """

    def change(graph: Graph) -> Change:
        of = _stages(graph, stages)
        totals = graph.ns_by_step[:, :, COMPUTE].sum(axis=2)
        means = np.stack([totals[of == stage].mean(axis=0) for stage in np.unique(of)])
        factor = _by(means.mean(axis=0), means)[np.searchsorted(np.unique(of), of)]
        longest = int(np.unique(of)[np.argmax(means.sum(axis=1))])
        cause = f"stages of unequal work (the longest is stage {longest})"
        return _scaled(graph, cause, [factor, factor], graph.activities.step, only=COMPUTE)

    return change


def sequences_equal(stages: Mapping[int, int] | None = None) -> Cause:
    """Give each rank in each step the mean computation of its stage over all steps, as if sequences had one length.

    Raises: InvalidInputError when a traced rank has no stage.
    """

    def change(graph: Graph) -> Change:
        of = np.zeros(len(graph.ranks), np.int64) if stages is None else _stages(graph, stages)
        totals = graph.ns_by_step[:, :, COMPUTE].sum(axis=2)
        first = 1 if totals.shape[1] > 1 else 0  # before the first marked step is another work
        factor = np.ones(totals.shape)
        for stage in np.unique(of):
            members = np.flatnonzero(of == stage)
            factor[members, first:] = _by(totals[members, first:].mean(), totals[members, first:])
        notes = ("no steps are marked: ranks are equalised over the whole trace",) if not first else ()
        made = _scaled(graph, "sequences of unequal lengths", [factor, factor], graph.activities.step, only=COMPUTE)
        return replace(made, notes=notes)

    return change


def communication_free(graph: Graph) -> Change:
    """Let collectives move their data in no time; their ranks still meet: an ideal network."""
    alone = int((graph.activities.work == Work.TRANSFER).sum())
    note = f"{alone} collectives are traced on one rank alone: their waits count as transfer"
    return Change("transfers", lambda _, works: np.where(works == Work.TRANSFER, 0.0, 1.0), (note,) if alone else ())


def kernels_faster(pattern: str, factor: float) -> Cause:
    """Let kernels, or operators without a device, whose name has a pattern run so many times faster.

    Raises: InvalidInputError for a factor of 0 or less, a pattern that is none, or one that nothing has.
    """

    def change(graph: Graph) -> Change:
        chosen = np.array([*(bool(_compiled(pattern).search(name)) for name in graph.names), False])
        activities = graph.activities
        is_it = chosen[activities.name] & np.isin(activities.work, COMPUTE)
        if not factor > 0:
            raise InvalidInputError(f"kernels {pattern!r}, {factor} times faster: expected a factor over 0")
        if not is_it.any():
            raise InvalidInputError(f"kernels {pattern!r}: no kernel's name has it; expected a part of some names")

        def scale(rows: Integers, works: Works) -> Floats:
            return np.where(chosen[activities.name[rows]] & np.isin(works, COMPUTE), 1.0 / factor, 1.0)

        return Change(f"{pattern} not {factor:g} times faster", scale)

    return change


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InvalidInputError(f"kernels {pattern!r}: {error}; expected a regular expression") from error


def peers_of(graph: Graph, rank: int, stages: Mapping[int, int] | None) -> list[int]:
    """Return the other traced ranks of its stage, all others without stages."""
    others = [one for one in graph.ranks if one != rank]
    return others if stages is None else [one for one in others if stages.get(one) == stages.get(rank)]


def _stages(graph: Graph, stages: Mapping[int, int]) -> Integers:
    lost = [rank for rank in graph.ranks if rank not in stages]
    if lost:
        raise InvalidInputError(f"stages: none of {text_of(lost)}; expected one for each traced rank")
    return np.array([stages[rank] for rank in graph.ranks], np.int64)


def _by(wanted: Floats | float, own: Floats) -> Floats:
    """Return wanted / own; 1 where a rank has none of it."""
    return np.divide(wanted, own, out=np.ones_like(own), where=own > 0)


def _scaled(
    graph: Graph, cause: str, factors: Sequence[Floats], parts: Codes, *, only: Sequence[Work] = (*DEVICE, *HOST)
) -> Change:
    """Return a change that scales work on devices and on hosts by factors, (n_ranks, n_parts) each."""
    table = np.ones((*factors[0].shape, len(Work)))
    for work in only:
        table[:, :, work] = factors[0 if work in DEVICE else 1]

    def scale(rows: Integers, works: Works) -> Floats:
        return table[graph.activities.rank[rows], parts[rows], works]

    return Change(cause, scale)
