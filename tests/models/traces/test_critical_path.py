"""The critical path leads to what took the time, and sums to the span; a replay without a change gives it back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.traces.made_traces import (
    DLRM8,
    KINETO,
    OTHER_STREAM,
    OTHER_THREAD,
    STREAM,
    THREAD,
    Row,
    made,
    read,
)
from tests.needs import needs_data

from crosswind.data.traces.trace import NONE, Kind, RankTrace
from crosswind.models.traces.critical_path import critical_path, path_of
from crosswind.models.traces.graph.build import graph
from crosswind.models.traces.graph.graph import Graph, Work
from crosswind.models.traces.graph.replay import replayed
from crosswind.models.traces.what_if.causes import nothing

US = 1000
REDUCE = "ncclKernel_AllReduce_RING_LL_Sum_float(x)"
PUBLISHED = {
    "dlrm8": DLRM8,
    "gloo2": ["gloo2/rank0_slow1.json.gz", "gloo2/rank1_slow1.json.gz"],
    "sampled2": [f"sampled2/sampled_rank-{rank}.json.gz" for rank in range(2)],
    "mi300": ["mi300_resnet_rank0of8.json.gz"],
    "triton": ["triton_tiny.json.gz"],
    "host only": ["rank_missing.json.gz"],
}


def check(made_graph: Graph) -> None:
    """Assert that the replay is exact, and that the path has no gap and sums to the span."""
    activities = made_graph.activities
    before = activities.before
    assert np.all(before < np.arange(len(activities))[:, None])
    ends = replayed(made_graph, [nothing(made_graph).scale])
    assert np.array_equal(ends[:, 0], activities.end_ns)
    path = path_of(made_graph)
    assert path.span_ns == made_graph.span_ns == sum(path.by_work.values()) == sum(path.by_rank.values())
    assert np.array_equal((path.begin_ns + path.length_ns)[:-1], path.begin_ns[1:])


@needs_data(KINETO)
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_paths_of_published_traces_sum_to_their_spans(name: str) -> None:
    check(graph(read(*PUBLISHED[name])))


@needs_data(KINETO)
def test_the_path_of_a_run_with_a_rank_that_sleeps_is_mostly_on_it() -> None:
    by_rank = critical_path(read(*PUBLISHED["gloo2"])).by_rank
    assert by_rank[1] > 2 * by_rank[0]


def step(rank: int, compute: int) -> RankTrace:
    """A kernel of so many microseconds and an all-reduce on another stream, which rank 0 enters first; 100 us each."""
    meeting = max(compute, 300) + 20
    rows: list[Row] = [
        (Kind.CALL, "launch", THREAD, 0, 5 * US),
        (Kind.KERNEL, "gemm", STREAM, 10 * US, compute * US),
        (Kind.CALL, "launch", THREAD, 15 * US, 5 * US),
        (Kind.COLLECTIVE, REDUCE, OTHER_STREAM, (compute + 11) * US, (meeting - compute - 11 + 100) * US),
        (Kind.SYNC, "cudaDeviceSynchronize", THREAD, 25 * US, (meeting + 105 - 25) * US),
    ]
    return made(rows, rank, correlation=[1, 1, 2, 2, 3])


def test_the_path_leads_through_the_rank_that_arrives_last() -> None:
    result = critical_path([step(0, 100), step(1, 300)])
    assert result.by_work == {
        Work.COMPUTE: 300 * US,
        Work.TRANSFER: 109 * US,
        Work.LAUNCH: 10 * US,
        Work.SYNC: 5 * US,
        Work.QUEUE: 1 * US,
    }
    assert result.by_rank[1] >= 311 * US
    assert result.by_name(1)[0][0] == "gemm"
    assert result.notes == ("ranks 0-1: which streams wait for which is read off the times",)


def test_an_operator_that_waits_for_a_message_follows_its_last_arrival() -> None:
    def rank(number: int, work: int) -> RankTrace:
        rows: list[Row] = [
            (Kind.OPERATOR, "mm", THREAD, 0, work),
            (Kind.MESSAGE, "gloo:all_reduce", OTHER_THREAD, work + 1, 510 - work),
            (Kind.OPERATOR, "step", THREAD, 512, 50),
        ]
        return made(rows, number)

    result = critical_path([rank(0, 100), rank(1, 490)])
    assert result.by_rank[1] >= 491
    assert result.by_work[Work.OPERATOR] == 540
    assert result.by_work[Work.TRANSFER] + result.by_work[Work.HOST] == 22


def test_no_event_gives_an_empty_path() -> None:
    assert critical_path([made([])]).span_ns == 0


ROW = st.tuples(st.sampled_from(list(Kind)), st.sampled_from(["a", REDUCE, "gloo:all_reduce"]), st.integers(0, 3))
EVENTS = st.lists(st.tuples(ROW, st.integers(0, 200), st.integers(0, 80), st.integers(-1, 4)), min_size=1, max_size=30)


@given(st.lists(EVENTS, min_size=1, max_size=3))
def test_any_events_give_a_path_that_sums_and_an_exact_replay(
    ranks: list[list[tuple[tuple[Kind, str, int], int, int, int]]],
) -> None:
    traces = []
    for number, events in enumerate(ranks):
        rows = [(kind, name, place, begin, duration) for (kind, name, place), begin, duration, _ in events]
        traces.append(made(rows, number, correlation=[one[3] if one[3] > 0 else NONE for one in events]))
    check(graph(traces))
