"""Steps are the marked ones; without marks, an optimizer's ranges end them."""

import numpy as np
import pytest
from tests.models.traces.made_traces import KINETO, THREAD, Row, made, read
from tests.needs import needs_data

from crosswind.data.traces.trace import Kind, RankTrace
from crosswind.models.traces.difference.windows import step_edges, windows
from crosswind.models.traces.report import trace_report
from crosswind.models.traces.steps import turns

STEP_NS, OPTIMIZER_NS = 1000, 40


def trained(steps: int, *more: Row, optimizers: tuple[str, ...] = ("SGD",)) -> RankTrace:
    """Steps that follow one another from 500 ns on, each of an operator and then the ranges of its optimizers."""
    rows: list[Row] = []
    for begin in range(500, 500 + steps * STEP_NS, STEP_NS):
        rows.append((Kind.OPERATOR, "mm", THREAD, begin, 900))
        for number, name in enumerate(optimizers):
            end = begin + STEP_NS - OPTIMIZER_NS * number
            rows.append((Kind.ANNOTATION, f"Optimizer.step#{name}.step", THREAD, end - OPTIMIZER_NS, OPTIMIZER_NS))
    return made(sorted([*rows, *more], key=lambda row: row[3]))


@pytest.mark.parametrize("optimizers", [("SGD",), ("Adam", "SGD")])
def test_a_step_lasts_from_the_end_of_one_range_of_the_optimizer_to_that_of_the_next(
    optimizers: tuple[str, ...],
) -> None:
    steps = turns(trained(4, optimizers=optimizers))
    assert len(steps) == 4
    assert (steps.duration_ns[1:] == STEP_NS).all()
    assert steps.begin_ns[0] == 500  # the first event
    assert np.array_equal(steps.begin_ns[1:], steps.end_ns[:-1])


def test_marked_steps_come_before_the_optimizer() -> None:
    trace = trained(4, (Kind.STEP, "ProfilerStep#7", THREAD, 600, 3000))
    assert turns(trace).duration_ns.tolist() == [3000]


def test_a_trace_without_both_has_no_steps() -> None:
    assert not len(turns(made([(Kind.OPERATOR, "mm", THREAD, 0, 10)])))
    assert not len(turns(made([])))


def test_a_difference_compares_what_lies_between_two_ranges() -> None:
    trace = trained(5)
    begins = 500 + STEP_NS - OPTIMIZER_NS + STEP_NS * np.arange(5)
    assert windows(trace).edges.tolist() == begins[:-1].tolist()
    assert step_edges(trace).tolist() == [500 + STEP_NS * number for number in range(6)]


@needs_data(KINETO)
def test_steps_of_a_published_trace_are_whole() -> None:
    report = trace_report(read("gloo2/rank0_slow1.json.gz", "gloo2/rank1_slow1.json.gz"))
    for rank in report.ranks:
        assert len(rank.step_ns) == len(rank.step_wait_ns) == 10
        assert min(rank.step_ns) > 30e6  # rank 1 sleeps 30 ms in every step, and rank 0 waits for it
        assert sum(rank.step_ns) > 0.9 * rank.span_ns
