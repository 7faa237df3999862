import numpy as np
import pandas as pd
import pytest

from crosswind.models.forecast.level_changes import level_changes


def runs_of(level: list[float], cohorts: list[str], *, noise: float = 0.03, seed: int = 0) -> pd.DataFrame:
    """A run a second with these levels; cohort `b` takes ten times as long as `a`."""
    usual = np.array([{"a": 1.0, "b": 10.0}[name] for name in cohorts])
    random = np.exp(np.random.default_rng(seed).normal(0, noise, len(level)))
    seconds = usual * np.array(level) * random
    return pd.DataFrame({"started_ns": range(len(level)), "cohort": cohorts, "step_mean_seconds": seconds})


def test_a_change_common_to_the_cohorts_is_found_at_its_run() -> None:
    [change] = level_changes(runs_of([1.0] * 40 + [1.3] * 20, ["a", "b"] * 30))
    assert change.since_ns == pytest.approx(40, abs=1)  # noise 3 % against a step of 26 %: a run off at most
    assert change.ratio == pytest.approx(1.3, rel=0.03)  # medians of 40 and 20 runs of noise 3 %: 1 % standard error
    assert (change.runs_before, change.runs_since) == (change.since_ns, 60 - change.since_ns)


def test_the_order_of_the_rows_does_not_matter() -> None:
    runs = runs_of([1.0] * 30 + [1.5] * 30, ["a", "b"] * 30)
    assert level_changes(runs.sample(frac=1, random_state=1)) == level_changes(runs)


def test_another_configuration_is_no_change() -> None:
    assert level_changes(runs_of([1.0] * 60, ["a"] * 30 + ["b"] * 30)) == []


@pytest.mark.parametrize("seed", range(20))
def test_noise_alone_is_no_change(seed: int) -> None:
    assert level_changes(runs_of([1.0] * 200, ["a", "b"] * 100, seed=seed)) == []  # seeded: of 20, none


def test_a_single_slow_run_and_a_change_of_a_fiftieth_are_no_changes() -> None:
    assert level_changes(runs_of([1.0] * 30 + [3.0] + [1.0] * 29, ["a"] * 60)) == []
    assert level_changes(runs_of([1.0] * 60 + [1.02] * 60, ["a"] * 120, noise=0.001)) == []


def test_fewer_than_ten_runs_tell_of_no_change() -> None:
    assert level_changes(runs_of([1.0] * 4 + [2.0] * 5, ["a"] * 9)) == []
