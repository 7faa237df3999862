from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.models.tuner.evidence.early_stop import Incumbent, Patience, levels_of, stop_of
from crosswind.models.tuner.evidence.watch import Watched, watch

AddRun = Callable[..., Run]


def itself(levels: Floats) -> Floats:
    return levels


def noisy(level: float, count: int, seed: int = 0) -> Floats:
    return np.asarray(level * np.exp(np.random.default_rng(seed).normal(0, 0.05, count)))


def test_a_hopeless_trial_is_stopped_with_a_reason() -> None:
    stop = stop_of(noisy(3.0, 15), itself, Incumbent(1.0), total_steps=100)
    assert stop is not None
    assert stop.steps == 15
    assert stop.chance < 0.02
    assert stop.low < stop.objective < stop.high
    assert stop.objective == pytest.approx(3.0, rel=0.1)
    assert stop.reason.startswith("the chance to beat the best trial is ")


def test_a_trial_as_good_as_the_incumbent_goes_on() -> None:
    assert stop_of(noisy(1.02, 50), itself, Incumbent(1.0), total_steps=100) is None


def test_nothing_is_said_of_few_steps_or_warm_up() -> None:
    patience = Patience(fewest_steps=8, warm_up_steps=3)
    assert stop_of(noisy(50.0, 10), itself, Incumbent(1.0), patience=patience) is None
    slow_start = np.concatenate([[500.0] * 3, noisy(0.9, 30)])
    assert stop_of(slow_start, itself, Incumbent(1.0), patience=patience) is None


def test_a_trial_that_grows_quick_is_let_go_on() -> None:
    recovered = np.concatenate([noisy(3.0, 30), noisy(0.9, 15)])
    assert stop_of(recovered, itself, Incumbent(1.0), total_steps=100) is None
    assert stop_of(recovered[:30], itself, Incumbent(1.0), total_steps=100) is not None


def test_a_trial_that_takes_too_long_is_stopped_however_good() -> None:
    slow_but_large_batch = stop_of(
        noisy(3.0, 20), lambda levels: levels / 100, Incumbent(1.0, seconds=100.0), total_steps=100
    )
    assert slow_but_large_batch is not None
    assert slow_but_large_batch.chance > 0.9
    assert "times the incumbent's 100 s, expected at most 2.5 times" in slow_but_large_batch.reason


def test_negated_rates_are_objectives_too() -> None:
    def rate(levels: Floats) -> Floats:
        return np.asarray(-1 / levels)

    assert stop_of(noisy(3.0, 20), rate, Incumbent(-1.0)) is not None
    assert stop_of(noisy(0.9, 20), rate, Incumbent(-1.0)) is None


def test_a_trial_without_an_objective_is_left_alone() -> None:
    assert stop_of(noisy(3.0, 20), lambda levels: levels * np.nan, Incumbent(1.0)) is None


@given(st.floats(1e-6, 1e6), st.integers(0, 1000), st.integers(8, 60))
def test_levels_hold_the_median_and_narrow_towards_the_end(level: float, seed: int, count: int) -> None:
    seen = noisy(level, count, seed)
    levels = levels_of(seen, None)
    assert np.all(np.diff(levels) >= 0)
    near_end = levels_of(seen, count + 1)
    assert near_end[-100] / near_end[100] <= levels[-100] / levels[100]
    assert levels[len(levels) // 2] <= np.median(seen) * (1 + 1e-3)


# 100 studies of 12 trials whose levels differ by 40 %, with noise of 10 % and a drift of 5 %: as the lab's undisturbed
# runs. The bounds are far from what is found (none stopped, nearly half saved) and hold for any seed that was tried.
def test_the_best_of_simulated_studies_is_hardly_ever_stopped() -> None:
    draw = np.random.default_rng(5)
    lost = saved = 0.0
    for _ in range(100):
        levels = np.exp(draw.normal(0, 0.4, 12))
        drift = np.cumsum(draw.normal(0, 0.05 / np.sqrt(60), (12, 60)), axis=1)
        trials = levels[:, None] * np.exp(draw.normal(0, 0.1, (12, 60)) + drift)
        finals = np.median(trials[:, 3:], axis=1)
        best = np.inf
        for trial, final in zip(trials, finals, strict=True):
            checks = range(11, 60, 7) if np.isfinite(best) else ()
            stops = (stop_of(trial[:k], itself, Incumbent(best), total_steps=60) for k in checks)
            stop = next((decision for decision in stops if decision), None)
            saved += (60 - stop.steps) / 60 if stop else 0
            lost += stop is not None and final == finals.min()
            best = best if stop else min(best, float(final))
    assert lost / 100 < 0.01
    assert saved / (100 * 12) > 0.2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Incumbent(float("nan")), "the incumbent's objective is nan, expected a finite number"),
        (lambda: Incumbent(1.0, seconds=0.0), "the incumbent's seconds are 0.0, expected a positive number"),
        (lambda: Patience(fewest_steps=2), "fewest_steps is 2 after 3, expected 3 or more"),
        (lambda: Patience(least_chance=0.6), "least_chance is 0.6, expected a number between 0 and 0.5"),
        (lambda: Patience(most_times=1.0), "most_times is 1.0, expected more than 1"),
        (lambda: stop_of(np.array([1.0, -1.0]), itself, Incumbent(1.0)), "expected positive finite numbers"),
        (lambda: stop_of(np.ones(5), itself, Incumbent(1.0), total_steps=4), "total_steps is 4, expected 5 or more"),
    ],
)
def test_bad_input_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_a_stored_run_is_watched_while_it_runs(store: Store, add_run: AddRun) -> None:
    slow = [3.0, 3.1] * 10
    add_run("slow", {"steps": 100, "batch": 8}, steps=slow, state=RunState.RUNNING)
    add_run("good", {"steps": 100, "batch": 8}, steps=[0.9, 1.0] * 10, state=RunState.RUNNING)
    add_run("ended", {"steps": 20}, steps=slow)
    add_run("silent", {}, steps=(), state=RunState.RUNNING)
    stop = watch(store, "slow", Incumbent(1.0))
    assert stop is not None
    assert (stop.steps, round(stop.objective, 1)) == (20, 3.0)
    assert [watch(store, run_id, Incumbent(1.0)) for run_id in ("good", "ended", "silent")] == [None] * 3
    per_sample = Watched(objective="-batch / step_p50_seconds")
    assert watch(store, "slow", Incumbent(-8.0), per_sample) is not None
    assert watch(store, "slow", Incumbent(-2.0), per_sample) is None
    whole = watch(store, "slow", Incumbent(100.0), Watched(objective="run_seconds"))
    assert whole is not None
    assert whole.objective == pytest.approx(305, rel=0.03)
    unknown_end = Watched(objective="run_seconds", total_steps=5)  # it made more steps: nobody knows the whole time
    assert watch(store, "slow", Incumbent(100.0), unknown_end) is None


def test_what_cannot_be_watched_is_refused(store: Store, add_run: AddRun) -> None:
    add_run("slow", {}, state=RunState.RUNNING)
    with pytest.raises(NotFoundError, match="run 'nowhere' is not in the catalog"):
        watch(store, "nowhere", Incumbent(1.0))
    with pytest.raises(InvalidInputError, match="batch is no outcome of a run"):
        watch(store, "slow", Incumbent(1.0), replace(Watched(), objective="step_p50_seconds / batch"))
