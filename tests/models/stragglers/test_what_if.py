import numpy as np
import pandas as pd
import pytest
from tests.models.stragglers.pipeline_trace import TRACE, operations
from tests.needs import needs_data

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.stragglers.replay import replayed_slowdown
from crosswind.models.stragglers.what_if import synchronous_slowdown


def test_a_late_rank_is_what_slows_the_run() -> None:
    local = np.array([[1.0, 1.0, 2.0], [1.0, 1.0, 1.0]])
    slowdown = synchronous_slowdown(local, np.array([0.5, 0.5]))
    assert slowdown.whole == pytest.approx((2.5 + 1.5) / (1.5 + 1.5))
    assert slowdown.rank == 2
    assert slowdown.alone == pytest.approx((1.0, 1.0, 4 / 3))
    assert slowdown.without == pytest.approx((1.0, 1.0, 4 / 3))  # mending it brings all of it


def test_of_two_late_ranks_mending_one_brings_nothing() -> None:
    slowdown = synchronous_slowdown(np.array([[2.0, 2.0, 1.0, 1.0, 1.0]]), np.array([0.0]))
    assert (slowdown.whole, slowdown.alone[0], slowdown.without[0]) == pytest.approx((2.0, 2.0, 1.0))


def test_stages_are_equal_among_themselves() -> None:
    slowdown = synchronous_slowdown(
        np.array([[1.0, 1.0, 1.4, 3.0, 3.0, 3.3]]), np.array([0.0]), groups=[0, 0, 0, 1, 1, 1]
    )
    assert slowdown.whole == pytest.approx(1.1)
    assert slowdown.of_group == pytest.approx((1.0, 1.1))


@pytest.mark.parametrize(
    ("local", "fabric"),
    [
        (np.ones((0, 2)), np.ones(0)),
        (np.ones(3), np.ones(3)),
        (np.ones((2, 2)), np.ones(3)),
        (np.array([[1.0, np.nan]]), np.ones(1)),
        (np.array([[1.0, -1.0]]), np.ones(1)),
    ],
)
def test_times_that_cannot_be_are_refused(local: np.ndarray, fabric: np.ndarray) -> None:  # type: ignore[type-arg]
    with pytest.raises(InvalidInputError, match="expected"):
        synchronous_slowdown(local, fabric)


def two_ranks(first: float, second: float) -> pd.DataFrame:
    """Each computes, then both meet for a second."""
    rows = [
        (0, 0, 0, "compute", 0, None, 0.0, first),
        (0, 1, 1, "compute", 0, None, 5.0, second),  # by another clock
        (0, 0, 0, "reduce", 0, "all", first, 1.0 + max(second - first, 0)),
        (0, 1, 1, "reduce", 0, "all", 5.0 + second, 1.0 + max(first - second, 0)),
    ]
    names = ["step", "rank", "stage", "operation", "number", "meeting", "start", "duration"]
    return pd.DataFrame(rows, columns=names)


def test_a_replay_needs_no_common_clock() -> None:
    slowdown = replayed_slowdown(two_ranks(2.0, 4.0))
    assert slowdown.whole == pytest.approx(5.0 / 4.0)  # measured 4 + 1, equal 3 + 1
    assert slowdown.of_group == pytest.approx((1.0, 5.0 / 4.0))
    assert slowdown.rank == 1


def test_ranks_that_wait_in_a_ring_are_refused() -> None:
    rows = [(0, 0, 0, "a", 0, "x", 0.0, 1.0), (0, 0, 0, "b", 0, "y", 1.0, 1.0)]
    rows += [(0, 1, 1, "b", 0, "y", 0.0, 1.0), (0, 1, 1, "a", 0, "x", 1.0, 1.0)]
    with pytest.raises(InvalidInputError, match="in a ring"):
        replayed_slowdown(pd.DataFrame(rows, columns=two_ranks(1, 1).columns))


def test_missing_columns_are_named() -> None:
    with pytest.raises(InvalidInputError, match="meeting"):
        replayed_slowdown(two_ranks(1.0, 1.0).drop(columns="meeting"))
    with pytest.raises(InvalidInputError, match="expected a row at least"):
        replayed_slowdown(two_ranks(1.0, 1.0).iloc[:0])


@needs_data(TRACE)
def test_the_long_last_stage_of_a_published_trace_is_named() -> None:
    slowdown = replayed_slowdown(operations(TRACE))
    assert slowdown.whole == pytest.approx(1.179, abs=0.01)  # as published with the trace
    assert slowdown.of_group == pytest.approx((0.998, 0.983, 0.982, 1.232), abs=0.01)
    assert int(np.argmax(slowdown.of_group)) == 3
    assert set(np.argsort(slowdown.alone)[-2:]) == {6, 7}  # both replicas of that stage
