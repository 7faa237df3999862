"""The verdict agrees with the replay: a rank that only begins late is not called slow, nor one of a long stage."""

from dataclasses import replace

import pytest
from tests.models.traces.made_traces import DLRM8, KINETO, made, read
from tests.models.traces.test_critical_path import step
from tests.needs import needs_data

from crosswind.data.traces.trace import Group, Kind, RankTrace
from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.step_table import StepTableReader
from crosswind.models.traces.clocks import clocks
from crosswind.models.traces.graph.build import graph
from crosswind.models.traces.late_rank import late_rank
from crosswind.models.traces.report import trace_report

STEPS = KINETO.parent / "steps"


def verdict(traces: list[RankTrace]) -> str:
    return trace_report(traces).verdict


@needs_data(KINETO)
def test_a_rank_that_begins_late_is_not_called_slow() -> None:
    text = verdict(read(*DLRM8))
    assert "The others wait longest for rank 7: 5.08 ms each, 25 % of the time" in text
    assert "It is late, not slow: its trace begins 4.65 ms after the median of the others" in text
    assert "the run would take 0.41 % less time" in text


@needs_data(KINETO)
def test_a_rank_that_sleeps_would_save_a_third() -> None:
    text = verdict(read("gloo2/rank0_slow1.json.gz", "gloo2/rank1_slow1.json.gz"))
    assert "The others wait longest for rank 1" in text
    assert text.endswith("With the work of its peers the run would take 33 % less time.")


@needs_data(STEPS)
def test_a_long_stage_is_named_as_a_stage() -> None:
    path = STEPS / "bytedance_ST.parquet"
    text = verdict(list(StepTableReader().read(path, Report(str(path), "step_table"))))
    assert "Of the pipeline's 4 stages, stage 3, the last one, computes longest, 24 % over their mean" in text
    assert "rank 7" not in text


def test_a_rank_alone_in_its_stage_is_waited_for_without_a_replay() -> None:
    groups = (Group("p", (0, 1), 2),)
    ranks = [replace(one, groups=groups) for one in (step(0, 100), step(1, 300))]
    for one in ranks:
        one.events.group[one.events.kind == Kind.COLLECTIVE] = 0
    renamed = [
        replace(one, names=tuple("ncclDevKernel_SendRecv" if "nccl" in name else name for name in one.names))
        for one in ranks
    ]
    text = verdict(renamed)
    assert "The others wait longest for rank 1" in text
    assert text.endswith("collectives.")
    assert "Of the pipeline's 2 stages, stage 1, the last one, computes longest, 50 % over their mean" in text


def test_work_that_a_rank_has_more_of_is_saved() -> None:
    assert verdict([step(0, 100), step(1, 300)]).endswith("the run would take 47 % less time.")


@pytest.mark.parametrize("ranks", [1, 2])
def test_ranks_that_are_equal_are_not_waited_for(ranks: int) -> None:
    assert "wait longest" not in verdict([step(rank, 100) for rank in range(ranks)])


def test_a_trace_without_events_has_no_begin() -> None:
    traces = [*(step(rank, work).moved(10**18) for rank, work in ((0, 100), (1, 300))), made([], 2)]
    late = late_rank(1, traces, graph=graph(traces), offsets=clocks(traces), stages={})
    assert abs(late.begins_after_ns) < 1000
