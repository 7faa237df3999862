"""Collectives matched across ranks, clocks, and who comes last."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.models.traces.made_traces import DLRM8, KINETO, OTHER_STREAM, STREAM, THREAD, Row, made, read
from tests.needs import needs_data

from crosswind.data.traces.trace import Group, Kind, RankTrace
from crosswind.models.traces.arrivals import arrivals
from crosswind.models.traces.clocks import aligned, clocks
from crosswind.models.traces.collectives import PAIR, collectives
from crosswind.models.traces.pipeline import stages_of

REDUCE = "ncclKernel_AllReduce_RING_LL_Sum_float(x)"


def reduces(*times: tuple[int, int]) -> list[Row]:
    """All-reduces that begin and end at these times."""
    return [(Kind.COLLECTIVE, REDUCE, STREAM, begin, end - begin) for begin, end in times]


@needs_data(KINETO)
def test_the_rank_that_comes_last_in_a_published_run() -> None:
    result = arrivals(read(*DLRM8))
    assert result.times_last.tolist() == [0, 0, 0, 0, 1, 2, 0, 5]
    assert result.slowest == 7
    assert int(np.argmin(result.waited_ns)) == 7


@needs_data(KINETO)
def test_the_clocks_of_a_published_run_agree_within_microseconds() -> None:
    result = clocks(read(*DLRM8))
    assert np.abs(result.offset_ns).max() < 3000
    assert result.residual_ns.max() < 3000


@needs_data(KINETO)
def test_the_rank_that_sleeps_is_named_from_messages_on_the_host() -> None:
    result = arrivals(read("gloo2/rank0_slow1.json.gz", "gloo2/rank1_slow1.json.gz"))
    assert (result.slowest, len(result.last)) == (1, 20)
    assert result.times_last[1] > result.times_last[0]
    assert result.caused_ns[1] > 4 * result.caused_ns[0]


def test_wait_is_what_a_rank_has_over_the_last_to_arrive() -> None:
    first, second = made(reduces((0, 100), (150, 200)), 0), made(reduces((80, 100), (120, 200)), 1)
    matched = collectives([first, second])
    assert matched.basis == ("order of name",) * 2
    assert matched.transfer_ns.tolist() == [20, 50]
    assert matched.wait_ns.tolist() == [[80, 0], [0, 30]]
    result = arrivals([first, second])
    assert (result.last.tolist(), result.caused_ns.tolist(), result.slowest) == ([1, 0], [30, 80], 1)


def test_an_instant_of_waiting_in_two_collectives_at_once_counts_once() -> None:
    both = made(reduces((0, 100), (10, 110), (120, 200)), 0), made(reduces((80, 100), (85, 110), (150, 200)), 1)
    result = arrivals(both)
    assert result.wait_ns.tolist() == [[80, 0], [75, 0], [30, 0]]
    assert (result.waited_ns.tolist(), result.caused_ns.tolist()) == ([85 + 30, 0], [0, 85 + 30])
    assert result.waits_ns.tolist() == [[0, 85 + 30], [0, 0]]


def test_sequence_numbers_match_what_order_would_not() -> None:
    groups = (Group("0", (0, 1), 2),)
    first = made(reduces((0, 10), (20, 30)), 0, groups, group=[0, 0], sequence=[5, 6])
    second = made(reduces((20, 31), (40, 50)), 1, groups, group=[0, 0], sequence=[6, 7])
    matched = collectives([first, second])
    assert matched.is_in.tolist() == [[True, False], [True, True], [False, True]]
    assert matched.missing == ((1,), (), (0,))
    assert matched.basis[1] == "sequence"
    assert "1 collectives without rank 0" in matched.notes


def test_communicators_of_one_order_are_matched_apart() -> None:
    groups = (Group("tensor", (0, 1), 2), Group("data", (0, 2), 2))
    first = made(reduces((0, 10), (20, 30)), 0, groups, group=[1, 0])
    second = made(reduces((20, 30)), 1, groups, group=[0])
    matched = collectives([first, second])
    assert matched.group == ("data", "tensor")
    assert matched.missing == ((2,), ())
    assert matched.is_in.tolist() == [[True, False], [True, True]]


def test_unknown_operations_are_counted_and_matched_by_name() -> None:
    rows: list[Row] = [(Kind.COLLECTIVE, "ncclDevKernel_Generic(x)", STREAM, 0, 5)]
    matched = collectives([made(rows, 0), made(rows, 1)])
    assert matched.operation == ("unknown collective",)
    assert matched.is_in.all()
    assert matched.notes == ("unknown collective: 1 of 1 collectives",)


def test_messages_between_two_hosts_are_not_taken_for_collectives() -> None:
    rows: list[Row] = [(Kind.MESSAGE, "MPI_Sendrecv", THREAD, 0, 5), (Kind.MESSAGE, "MPI_Allreduce", THREAD, 9, 5)]
    matched = collectives([made(rows, 0), made(rows, 1)])
    assert matched.operation == ("all_reduce",)
    assert matched.notes == ("2 messages whose partners are not stated are not matched (MPI_Sendrecv)",)


def test_transfers_in_a_pipelines_communicator_are_not_taken_for_collectives() -> None:
    rows: list[Row] = [(Kind.COLLECTIVE, "forward-send", STREAM, 0, 5), (Kind.COLLECTIVE, "all-reduce", STREAM, 9, 5)]
    wide, narrow = (tuple(Group("p", tuple(range(size)), size) for _ in range(1)) for size in (4, 2))
    for groups, count in ((wide, 1), (narrow, 2)):
        traces = [made(rows, rank, groups, group=[0, 0], sequence=[1, 1]) for rank in range(2)]
        assert len(collectives(traces)) == count


def test_a_send_and_its_receive_are_joined_in_a_communicator_of_four() -> None:
    """Recorded with gloo, with the arguments that NCCL's sends have; rank 1 sleeps for 4 ms before each send."""
    pipeline4 = Path(__file__).parent / "pipeline4"
    traces = read(*(str(pipeline4 / f"rank{rank}.json.gz") for rank in range(4)))
    matched = collectives(traces)
    pairs = [row for row, basis in enumerate(matched.basis) if basis == PAIR]
    assert Counter(matched.group[row] for row in pairs) == {"0 0>1": 6, "0 1>2": 6, "0 2>3": 6}
    assert all(not matched.missing[row] for row in pairs)
    assert matched.is_in[pairs].sum(axis=1).tolist() == [2] * 18
    waits = [matched.wait_ns[row, 2] for row in pairs if matched.group[row] == "0 1>2"]
    assert min(waits) > 4_000_000
    assert stages_of(traces) == {0: 0, 1: 1, 2: 2, 3: 3}
    assert not [note for note in matched.notes if "partners" in note]


def test_numbers_that_begin_again_in_each_step_do_not_mix_steps() -> None:
    groups = (Group("data", (0, 1), 2),)
    first = made(reduces((0, 10), (20, 30)), 0, groups, group=[0, 0], sequence=[0, 0])
    matched = collectives([first, made(reduces((1, 10), (21, 30)), 1, groups, group=[0, 0], sequence=[0, 0])])
    assert matched.begin_ns.tolist() == [[0, 1], [20, 21]]
    assert set(matched.basis) == {"sequence"}


def test_one_rank_and_none_with_collectives() -> None:
    assert arrivals([made(reduces((0, 10)))]).slowest is None
    empty = collectives([made([(Kind.KERNEL, "gemm", OTHER_STREAM, 0, 5)], 0), made([], 1)])
    assert (len(empty), empty.transfer_ns.tolist(), empty.locations) == (0, [], "host")
    assert clocks([made([], 0), made([], 1)]).basis == "none"


def test_steps_align_clocks_without_collectives() -> None:
    step: list[Row] = [(Kind.STEP, "ProfilerStep#1", THREAD, 0, 100)]
    result = clocks([made(step, 0), made(step, 1).moved(-700)])
    assert (result.basis, result.offset_ns.tolist()) == ("ends of steps", [0, 700])


def test_ranks_of_one_file_have_one_clock() -> None:
    traces = [replace(made(reduces((0, 10 + rank)), rank), source="run.prv") for rank in range(2)]
    result = clocks(traces)
    assert (result.basis, result.offset_ns.tolist(), result.residual_ns.tolist()) == ("one recording", [0, 0], [0, 0])


def shifted(ends: list[int], offsets: list[int]) -> list[RankTrace]:
    """Ranks whose clocks are off, which meet at these ends."""
    return [
        made(reduces(*((end - 5 - rank, end) for end in ends)), rank).moved(offset)
        for rank, offset in enumerate(offsets)
    ]


@given(
    st.lists(st.integers(1, 1 << 40), min_size=1, max_size=20, unique=True),
    st.lists(st.integers(-(1 << 50), 1 << 50), min_size=1, max_size=6),
    st.integers(0, 1 << 60),
)
def test_clocks_are_recovered_to_the_nanosecond(ends: list[int], offsets: list[int], epoch: int) -> None:
    traces = [trace.moved(epoch) for trace in shifted(sorted(ends), offsets)]
    result = clocks(traces)
    assert result.offset_ns.tolist() == [offsets[0] - offset for offset in offsets]
    begins = [trace.events.end_ns.tolist() for trace in aligned(traces, result)]
    assert all(one == begins[0] for one in begins)


def test_ranks_that_share_nothing_with_the_first_are_named() -> None:
    groups = (Group("a", (0, 1), 2), Group("b", (2, 3), 2))
    traces = [made(reduces((rank, 10)), rank, groups, group=[rank // 2]) for rank in range(4)]
    assert clocks(traces).notes == ("ranks 2-3: nothing is shared with rank 0, so the clock is taken as equal",)
