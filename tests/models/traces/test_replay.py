"""A replay run by run, of several changes at once, gives what one activity after the other gives."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models.traces.made_traces import KINETO, made, read
from tests.models.traces.test_critical_path import EVENTS, PUBLISHED
from tests.needs import needs_data

from crosswind.data.traces.trace import NONE, Kind
from crosswind.models.traces.graph import runs
from crosswind.models.traces.graph.build import graph
from crosswind.models.traces.graph.graph import Floats, Graph
from crosswind.models.traces.graph.replay import Scale, replayed
from crosswind.models.traces.what_if.causes import (
    communication_free,
    kernels_faster,
    nothing,
    rank_as_peers,
    sequences_equal,
)
from crosswind.models.traces.what_if.what_if import Cause

FAR_UNDER_A_NANOSECOND = 1e-3


def one_after_the_other(run: Graph, scale: Scale) -> Floats:
    """Return the ends of activities, each from those of all that it depends on."""
    activities, rows = run.activities, np.arange(len(run.activities))
    lag, binding = run.lag_ns(rows).astype(np.float64), run.binding
    factor = np.where(lag[rows, binding] > 0, scale(rows, activities.lag_work[rows, binding]), 1.0)
    lag[rows, binding] *= factor
    own = activities.duration_ns * scale(rows, activities.work)
    ends = np.zeros(len(rows) + 1)
    for row in rows.tolist():
        ends[row] = (ends[activities.before[row]] + lag[row]).max() + own[row]
    return ends[:-1]


def check(run: Graph, causes: list[Cause]) -> None:
    scales = [cause(run).scale for cause in causes]
    at_once = replayed(run, scales)
    for column, scale in enumerate(scales):
        assert np.array_equal(at_once[:, column], replayed(run, [scale])[:, 0])
        assert np.abs(at_once[:, column] - one_after_the_other(run, scale)).max(initial=0) < FAR_UNDER_A_NANOSECOND


def causes_of(run: Graph) -> list[Cause]:
    ranks = [rank_as_peers(rank) for rank in run.ranks] if len(run.ranks) > 1 else []
    return [nothing, communication_free, sequences_equal(), kernels_faster("", 3.0), *ranks]


@needs_data(KINETO)
@pytest.mark.parametrize("name", PUBLISHED)
def test_one_pass_over_published_traces_is_as_single_replays(name: str) -> None:
    run = graph(read(*PUBLISHED[name]))
    check(run, causes_of(run))


@needs_data(KINETO)
def test_runs_of_a_published_trace_are_few() -> None:
    run = graph(read(*PUBLISHED["dlrm8"]))
    assert len(run.runs.edges(0, len(run.activities))) < len(run.activities) / 5


@settings(max_examples=60)
@given(st.lists(EVENTS, min_size=1, max_size=3), st.integers(1, 40))
def test_one_pass_over_any_graph_is_as_single_replays(
    ranks: list[list[tuple[tuple[Kind, str, int], int, int, int]]], block: int
) -> None:
    traces = []
    for number, events in enumerate(ranks):
        rows = [(kind, name, place, begin, duration) for (kind, name, place), begin, duration, _ in events]
        traces.append(made(rows, number, correlation=[one[3] if one[3] > 0 else NONE for one in events]))
    run = graph(traces)
    ranks_alone = [rank_as_peers(rank) for rank in run.ranks] if len(run.ranks) > 1 else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("crosswind.models.traces.graph.replay.BLOCK", block)
        patch.setattr(runs, "BLOCK", block)
        check(run, [nothing, communication_free, sequences_equal(), *ranks_alone])


def test_a_chain_is_one_run_and_what_it_waits_for_another() -> None:
    before = np.full((6, 3), NONE, np.int32)
    before[[1, 3, 4, 5], 0], before[3, 2] = [0, 1, 3, 2], 2
    plan = runs.runs_of(before, np.zeros(6, np.int64))
    edges = plan.edges(0, 6)
    parts = [plan.order[first:last].tolist() for first, last in pairwise(edges)]
    assert parts == [[0, 1], [2, 5], [3, 4]]
