"""Evidence in a run's segments by themselves: few that are outliers, and work that falls on one rank after another."""

import numpy as np
import pytest
from numpy.typing import NDArray

from crosswind.data.schema.prediction import Floats
from crosswind.models.explain.causes.uneven_work import uneven_seconds
from crosswind.models.explain.cohort.columns import IN_SEGMENTS
from crosswind.models.explain.evidence.indicators import SegmentTimes

Columns = dict[str, Floats]


def columns(count: int = 60, **values: float) -> Columns:
    usual = {"compute": 0.040, "run_queue_wait": 0.001, "cpu_user": 0.036, "cpu_system": 0.001, "fabric": 0.004}
    return {name: np.full(count, (usual | values)[name]) for name in usual}


def outlying(last: Columns, usual: float) -> Columns:
    """Return the evidence in segments of one rank, by column."""
    of_ranks = {name: values[:, None] for name, values in last.items()}
    times = SegmentTimes(of_ranks, last, np.zeros(len(last["compute"]), np.int64), usual)
    return {indicator.column: indicator.measure(times) for indicator in IN_SEGMENTS}


def uneven(work: Floats, culprit: NDArray[np.int64]) -> Floats:
    return uneven_seconds(SegmentTimes({"compute": work, "run_queue_wait": np.zeros_like(work)}, {}, culprit, 0.0))


def test_user_time_of_few_long_steps_is_a_late_compilation() -> None:
    of = columns()
    of["compute"][[20, 41]] += 0.5
    of["cpu_user"][[20, 41]] += 0.45
    idle, fabric, user = (outlying(of, 0.045)[name] for name in ("stalled", "stalled_fabric", "recompiled"))
    assert user.sum() == pytest.approx(0.9)
    assert set(np.flatnonzero(user)) == {20, 41}
    assert (idle.sum(), fabric.sum()) == (0, 0)


def test_many_long_steps_or_one_a_little_longer_are_none() -> None:
    of = columns()
    of["cpu_user"][::10] += 0.5  # one step in ten
    assert outlying(of, 0.045)["recompiled"].sum() == 0
    of = columns()
    of["cpu_user"][30] += 0.08
    assert outlying(of, 0.045)["recompiled"].sum() == 0


def test_a_thread_that_was_not_measured_has_none() -> None:
    evidence = outlying(columns(cpu_user=np.nan, run_queue_wait=np.nan), 0.045)
    assert evidence["stalled"].sum() + evidence["recompiled"].sum() == 0


def test_work_that_falls_on_one_rank_after_another_costs_the_largest_less_the_mean() -> None:
    work = np.array([[0.06, 0.03], [0.02, 0.05]] * 10)
    assert uneven(work, work.argmax(axis=1)).mean() == pytest.approx(0.055 - 0.040)


def test_one_rank_that_is_always_slower_is_no_uneven_work() -> None:
    work = np.array([[0.03, 0.05], [0.04, 0.06]] * 10)
    assert uneven(work, work.argmax(axis=1)).mean() == pytest.approx(0.0)
    assert (uneven(work[:, :1], np.zeros(20, np.int64)) == 0).all()
    assert np.isnan(uneven(np.full((4, 2), np.nan), np.zeros(4, np.int64))).all()
