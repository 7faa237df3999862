"""Cost of a known delay to a run, on steps made by hand."""

import pandas as pd
import pytest
from benchmarks.accuracy.lost import Delay, delays_of, injected_and_lost

from crosswind.data.schema.run import Run, RunState

AT_REST = {"input_seconds": 0.0, "tail_seconds": 0.0, "checkpoint_seconds": 0.0, "other_seconds": 0.0}


def rows(*compute: tuple[float, float]) -> pd.DataFrame:
    """Two ranks' steps, from the fourth on, by how long each computed."""
    return pd.DataFrame(
        {"step": step, "rank": rank, "compute_seconds": seconds, **AT_REST}
        for step, of_ranks in enumerate(compute, start=3)
        for rank, seconds in enumerate(of_ranks)
    )


def run_with(tags: dict[str, str]) -> Run:
    """A run that has nothing but tags."""
    return Run("r", "w", "s", RunState.COMPLETED, tags=tags)


def test_only_what_made_the_rank_later_than_the_others_is_lost() -> None:
    """Rank 1 is delayed by 10 ms: it comes 10, 4 and -1 ms after rank 0, after a first step that no segment begins."""
    steps = rows((0.04, 0.04), (0.040, 0.050), (0.046, 0.050), (0.051, 0.050))
    injected, lost = injected_and_lost(steps, Delay("slow_rank", 1, 10.0, 0, 60))
    assert injected == pytest.approx(0.030)
    assert lost == pytest.approx(0.010 + 0.004)


def test_a_delay_counts_where_it_was_there() -> None:
    steps = rows(*[(0.04, 0.05)] * 5)
    assert injected_and_lost(steps, Delay("slow_rank", 1, 10.0, 5, 7)) == pytest.approx((0.020, 0.020))


def test_what_comes_after_the_last_collective_delays_the_next_step() -> None:
    steps = rows((0.04, 0.04), (0.04, 0.05), (0.04, 0.05))
    steps.loc[(steps["rank"] == 0) & (steps["step"] == 4), "checkpoint_seconds"] = 0.008
    assert injected_and_lost(steps, Delay("slow_rank", 1, 10.0, 0, 60))[1] == pytest.approx(0.010 + 0.002)


def test_a_tag_names_its_delays() -> None:
    tags = {"injected": "slow_input:1:13.2; late_checkpoint:0:264 from step 18 to step 36"}
    assert list(delays_of(run_with(tags), 60)) == [
        Delay("slow_input", 1, 13.2, 0, 60),
        Delay("late_checkpoint", 0, 264.0, 18, 36),
    ]
    assert not list(delays_of(run_with({"injected": "none"}), 60))
