"""A long stage is named as such and its ranks are not called slow; replays of a published table of steps."""

import pytest
from tests.models.stragglers.pipeline_trace import TRACE, operations
from tests.models.traces.made_traces import STREAM, THREAD, Row, made
from tests.needs import needs_data

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.traces.trace import NONE, Group, Kind, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.step_table import StepTableReader
from crosswind.models.traces.pipeline import expected_bubble_share, pipeline, stages_of
from crosswind.models.traces.report_what_if import trace_what_ifs
from crosswind.models.traces.what_if.step_table import operations_of, table_what_ifs
from crosswind.models.traces.what_if.survey import what_ifs_of

STAGE_OF = {rank: rank // 2 for rank in range(8)}


def stage(rank: int, compute: int) -> RankTrace:
    """Computes, waits for the other stage, and meets all ranks in the last 10 ns of 100."""
    rows: list[Row] = [
        (Kind.KERNEL, "gemm", STREAM, 0, compute),
        (Kind.COLLECTIVE, "ncclKernel_SendRecv", STREAM, compute, 90 - compute),
        (Kind.COLLECTIVE, "ncclKernel_AllReduce", STREAM, 90, 10),
    ]
    return made(rows, rank)


def test_ranks_are_compared_within_their_stage() -> None:
    result = pipeline([stage(0, 30), stage(1, 30), stage(2, 80), stage(3, 60)], {0: 0, 1: 0, 2: 1, 3: 1})
    assert (result.longest_stage, result.slow_ranks, result.span_ns) == (1, (2,), 100)
    assert [(one.compute_ns, one.collective_ns, one.bubble_ns) for one in result.ranks] == [
        (30, 10, 60),
        (30, 10, 60),
        (80, 10, 10),
        (60, 10, 30),
    ]
    assert result.bubble_share == pytest.approx(0.4)
    assert result.balance == pytest.approx(50 / 70)
    assert [one.ranks for one in result.stages] == [(0, 1), (2, 3)]


def test_stages_are_read_off_communicators_that_only_transfer() -> None:
    groups = (Group("pipeline", (0, 4), 2), Group("data", (0, 1), 2))
    rows: list[Row] = [(Kind.COLLECTIVE, "ncclDevKernel_SendRecv", STREAM, 0, 5)]
    rows += [(Kind.COLLECTIVE, "ncclDevKernel_AllReduce", STREAM, 5, 5)]
    traces = [made(rows, rank, groups, group=[0, 1]) for rank in (0, 4)]
    assert stages_of(traces) == {0: 0, 4: 1}
    assert stages_of([stage(0, 30)]) == {}


def test_ranks_without_a_stage_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="stages: none of ranks 0-1"):
        pipeline([stage(0, 30), stage(1, 30)])


def test_the_bubble_of_a_schedule() -> None:
    assert expected_bubble_share(4, 4) == pytest.approx(3 / 7)
    assert expected_bubble_share(4, 4, chunks=2) == pytest.approx(3 / 11)
    with pytest.raises(InvalidInputError, match="0 micro-batches"):
        expected_bubble_share(4, 0)


@needs_data(TRACE)
def test_a_published_table_is_as_much_slower_as_published() -> None:
    table = operations(TRACE)
    whole, first, *_ = table_what_ifs(table)
    assert whole.slowdown == pytest.approx(1.179, abs=0.03)
    assert (first.cause, first.steps) == ("stage 3 unlike the others", 32)
    assert first.slowdown > 1.15
    assert whole.saved_ns(1000) == pytest.approx(1000 * whole.saved_ns_per_step)


@needs_data(TRACE)
def test_a_published_table_as_traces() -> None:
    traces = list(StepTableReader().read(TRACE, Report(str(TRACE), "step_table")))
    assert stages_of(traces) == STAGE_OF
    whole, first, *_ = what_ifs_of(traces)
    assert whole.slowdown == pytest.approx(1.179, abs=0.03)
    assert (first.cause, first.steps) == ("stage 3 unlike the others", 32)
    result = pipeline(traces)
    assert (result.longest_stage, result.slow_ranks) == (3, ())


def test_a_table_whose_ranks_are_equal_gains_nothing() -> None:
    rows: list[Row] = [(Kind.OPERATOR, "forward-compute", THREAD, 0, 50), (Kind.MESSAGE, "all_reduce", THREAD, 50, 9)]
    traces = [made(rows, rank, (Group("all"),), group=[NONE, 0], sequence=[NONE, 1]) for rank in range(2)]
    assert [one.slowdown for one in table_what_ifs(operations_of(traces))] == pytest.approx([1.0] * 4)


@needs_data(TRACE)
def test_causes_of_a_table_are_named_as_others_and_have_its_replay() -> None:
    traces = list(StepTableReader().read(TRACE, Report("x", "step_table")))
    slowdowns = {one.cause: one.slowdown for one in trace_what_ifs(traces)}
    named = trace_what_ifs(traces, ["stages", "slow-rank", "rank:6", "sequences"])
    assert [one.cause for one in named] == [
        *("stage 3 unlike the others", "rank 7 unlike the others", "sequences of unequal lengths"),
        "rank 6 unlike the others",
    ]
    assert all(one.slowdown == slowdowns[one.cause] for one in named)
    for name in ("communication", "rank:99", "kernels:x", "rain"):
        with pytest.raises(InvalidInputError, match=f"--without '{name}': of this table of steps expected"):
            trace_what_ifs(traces, [name])
