"""Replays with one cause taken out save what it cost; without a change, nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.traces.made_traces import KINETO, STREAM, THREAD, Row, made, read
from tests.models.traces.test_critical_path import EVENTS, PUBLISHED, US, step
from tests.needs import needs_data

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.traces.trace import Kind, RankTrace
from crosswind.models.traces.graph.build import graph
from crosswind.models.traces.what_if import causes
from crosswind.models.traces.what_if.survey import what_ifs, what_ifs_of
from crosswind.models.traces.what_if.what_if import Cause, what_if


@needs_data(KINETO)
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_traces_replayed_without_a_change_are_as_measured(name: str) -> None:
    assert what_if(graph(read(*PUBLISHED[name])), causes.nothing).slowdown == pytest.approx(1.0, abs=1e-9)


@needs_data(KINETO)
def test_the_sleep_of_a_rank_is_recovered() -> None:
    slow = graph(read("gloo2/rank0_slow1.json.gz", "gloo2/rank1_slow1.json.gz"))
    plain = graph(read("gloo2/rank0_plain.json.gz", "gloo2/rank1_plain.json.gz"))
    result = what_if(slow, causes.rank_as_peers(1))
    assert (result.steps, plain.steps) == (10, 20)
    assert result.saved_ns_per_step == pytest.approx(30e6, rel=0.3)  # 30 ms asleep in every step, and rank 1's noise
    assert result.replayed_ns / 10 == pytest.approx(plain.span_ns / 20, rel=0.1)  # as without it
    assert result.saved_ns(1000) == pytest.approx(1000 * result.saved_ns_per_step)
    assert what_if(slow, causes.rank_as_peers(0)).saved_ns_per_step < result.saved_ns_per_step / 5
    noise = [what_if(plain, causes.rank_as_peers(rank)).saved_ns_per_step for rank in (0, 1)]
    assert max(noise) < 10e6  # without a sleep there is little to gain


@needs_data(KINETO)
def test_of_all_causes_the_rank_that_sleeps_comes_first() -> None:
    first, *others = what_ifs(graph(read("gloo2/rank0_slow1.json.gz", "gloo2/rank1_slow1.json.gz")))
    assert first.cause == "rank 1 slower than rank 0"
    assert {one.cause for one in others} == {"rank 0 slower than rank 1", "transfers", "sequences of unequal lengths"}


def test_all_causes_of_a_pipeline_and_of_one_rank() -> None:
    run = graph([step(0, 100), step(1, 300), step(2, 300)])
    causes_of = [one.cause for one in what_ifs(run, {0: 0, 1: 1, 2: 1})]
    assert causes_of[0] == "transfers"
    assert "stages of unequal work (the longest is stage 1)" in causes_of
    assert not any(one.startswith("rank 0") for one in causes_of)
    assert [one.cause for one in what_ifs_of([step(1, 300)])] == ["transfers"]


def test_a_slow_rank_made_equal_saves_what_it_had_over_the_others() -> None:
    result = what_if(graph([step(0, 100), step(1, 300)]), causes.rank_as_peers(1))
    assert result.cause == "rank 1 slower than rank 0"
    assert result.measured_ns - result.replayed_ns == pytest.approx(200 * US)
    assert result.slowdown == pytest.approx(425 / 225)


def test_ranks_are_compared_within_their_stage() -> None:
    ranks = graph([step(0, 100), step(1, 300), step(2, 300)])
    stages = {0: 0, 1: 1, 2: 1}
    assert what_if(ranks, causes.rank_as_peers(1, stages)).slowdown == pytest.approx(1.0)
    with pytest.raises(InvalidInputError, match="rank 0: not among ranks 0-2, or without others"):
        what_if(ranks, causes.rank_as_peers(0, stages))


def test_balanced_stages_take_their_mean() -> None:
    result = what_if(graph([step(0, 100), step(1, 300)]), causes.stage_balanced({0: 0, 1: 1}))
    assert result.cause == "stages of unequal work (the longest is stage 1)"
    assert result.measured_ns - result.replayed_ns == pytest.approx(100 * US)
    with pytest.raises(InvalidInputError, match="stages: none of rank 1"):
        what_if(graph([step(0, 100), step(1, 300)]), causes.stage_balanced({0: 0}))


def sequences(rank: int, *lengths: int) -> RankTrace:
    """Steps of 1000 us, each with one kernel, at whose end the ranks meet."""
    rows: list[Row] = []
    for number, length in enumerate(lengths):
        begin = number * 1000 * US
        rows.append((Kind.STEP, f"ProfilerStep#{number}", THREAD, begin, 999 * US))
        rows.append((Kind.KERNEL, "attention", STREAM, begin + 10, length * US))
        end = begin + 10 + length * US
        rows.append((Kind.COLLECTIVE, "ncclAllReduce", STREAM, end, begin + 800 * US - end))
    return made(rows, rank)


def test_equal_sequences_take_their_mean() -> None:
    measured = graph([sequences(0, 100, 500), sequences(1, 500, 100)])
    result = what_if(measured, causes.sequences_equal())
    assert result.steps == 2
    assert result.saved_ns_per_step == pytest.approx(200 * US, rel=0.01)


def test_free_communication_leaves_the_waits() -> None:
    result = what_if(graph([step(0, 100), step(1, 300)]), causes.communication_free)
    assert result.measured_ns - result.replayed_ns == pytest.approx(109 * US)


def test_collectives_of_one_traced_rank_are_said_to_hold_waits() -> None:
    result = what_if(graph([step(1, 300)]), causes.communication_free)
    assert "1 collectives are traced on one rank alone: their waits count as transfer" in result.notes


@pytest.mark.parametrize(("factor", "saved"), [(2.0, 150), (0.5, -300)])
def test_kernels_of_a_name_run_faster_or_slower(factor: float, saved: float) -> None:
    result = what_if(graph([step(0, 100), step(1, 300)]), causes.kernels_faster("^gemm$", factor))
    assert result.measured_ns - result.replayed_ns == pytest.approx(saved * US)


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        (causes.kernels_faster("softmax", 2.0), "no kernel's name has it"),
        (causes.kernels_faster("gemm", 0.0), "expected a factor over 0"),
        (causes.kernels_faster("gemm(", 2.0), "expected a regular expression"),
        (causes.rank_as_peers(7), "rank 7: not among ranks 0-1"),
    ],
)
def test_causes_that_are_not_there_are_refused(cause: Cause, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        what_if(graph([step(0, 100), step(1, 300)]), cause)


@given(st.lists(EVENTS, min_size=2, max_size=3))
def test_any_change_for_the_faster_saves_time_or_nothing(
    ranks: list[list[tuple[tuple[Kind, str, int], int, int, int]]],
) -> None:
    traces = [
        made([(kind, name, place, begin, duration) for (kind, name, place), begin, duration, _ in events], number)
        for number, events in enumerate(ranks)
    ]
    run = graph(traces)
    assert what_if(run, causes.nothing).replayed_ns == run.span_ns
    assert what_if(run, causes.communication_free).replayed_ns <= run.span_ns
    equal = [what_if(run, cause).replayed_ns for cause in (causes.rank_as_peers(0), causes.sequences_equal())]
    assert np.isfinite(equal).all()
