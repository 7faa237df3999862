"""Nodes that are slower than their peers in other runs, too."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from tests.models.explain.drawn_segments import compared_runs, own_of

from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.models.explain.causes.slow_node import slow_node_shares
from crosswind.models.explain.cohort.columns import COLUMNS
from crosswind.models.explain.cohort.segments import PeerEvidence, Segments, segments_of

Draw = Callable[..., Segments]
NODES = 6


def slow_shares(
    segments: Sequence[Segments], *, nodes: int = NODES, started: bool = True
) -> dict[str, dict[int, float]]:
    """Ranks 0 and 1 of run i are on nodes i and i + 1, in turn."""
    runs = [
        Run(run_segments.run_id, "w", "s", RunState.COMPLETED, 2, started_ns=number if started else None)
        for number, run_segments in enumerate(segments)
    ]
    ranks = [
        Rank(run_segments.run_id, rank, f"n{(number + rank) % nodes}", 7, 0)
        for number, run_segments in enumerate(segments)
        for rank in range(2)
    ]
    return slow_node_shares(compared_runs(runs, segments, ranks))


def is_nothing_lost(shares: dict[str, dict[int, float]]) -> bool:
    """Return whether there are shares, none of which says that a rank of a run lost anything."""
    return bool(shares) and not any(share for lost in shares.values() for share in lost.values())


def drawn_on(drawn: Draw, slow: int, *, count: int = 36, by: float = 1.25) -> list[Segments]:
    """Runs whose rank on node `slow` has more work; it comes last, rank 1 else."""
    random = np.random.default_rng(0)
    runs = []
    for number in range(count):
        work = {rank: float(random.normal(0.040, 0.0004)) for rank in range(2)}
        places = {(number + rank) % NODES: rank for rank in range(2)}
        if slow in places:
            work[places[slow]] *= by
        culprits = np.full(60, places.get(slow, 1))
        segments = drawn(number, compute=max(work.values()))
        runs.append(replace(segments, culprits=culprits, work=work))
    return runs


def test_the_share_of_its_work_that_a_slow_node_costs_a_rank(drawn: Draw) -> None:
    runs = drawn_on(drawn, 2)
    shares = slow_shares(runs)
    for number, segments in enumerate(runs):
        for rank, share in shares[segments.run_id].items():
            assert share == pytest.approx(1 - 1 / 1.25 if (number + rank) % NODES == 2 else 0.0, abs=0.03)


def test_the_rank_that_came_last_loses_by_its_own_node(drawn: Draw) -> None:
    segments = drawn(1)
    segments.culprits[:20] = 0
    segments = segments_of(own_of(segments), PeerEvidence(shares={"slow_node": {0: 0.0, 1: 0.25}}))
    seconds = segments.values[:, COLUMNS.index("slow_node")]
    assert (seconds[:20] == 0).all()
    assert seconds[20:] == pytest.approx(segments.values[20:, COLUMNS.index("compute")] / 4)


def test_nodes_that_are_alike_cost_nothing(drawn: Draw) -> None:
    assert is_nothing_lost(slow_shares(drawn_on(drawn, 2, by=1.0)))


def test_one_slow_run_makes_no_slow_node(drawn: Draw) -> None:
    runs = drawn_on(drawn, 2, by=1.0)
    runs[8] = replace(runs[8], work={0: 0.4, 1: 0.04})
    assert is_nothing_lost(slow_shares(runs))
    assert is_nothing_lost(slow_shares(drawn_on(drawn, 2, count=3)))


def test_runs_on_one_node_or_without_a_start_are_left_out(drawn: Draw) -> None:
    runs = drawn_on(drawn, 2)
    assert slow_shares(runs, nodes=1) == {}
    assert slow_shares(runs, started=False) == {}
    assert slow_shares([]) == {}
