import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Prediction
from crosswind.models.analytic.convergence import StepsToTarget, time_to_accuracy

BATCHES = np.array([32.0, 64, 128, 256, 512, 1024, 4096])


def steps_at(batches: np.ndarray) -> np.ndarray:
    return 1000 * (1 + 200 / batches)


def test_exact_runs_give_both_constants_back() -> None:
    fitted = StepsToTarget.fit(BATCHES, steps_at(BATCHES))
    assert fitted.steps_min == pytest.approx(1000, rel=1e-3)
    assert fitted.noise_batch == pytest.approx(200, rel=1e-3)
    assert fitted.steps(np.array([200.0])) == pytest.approx(2000, rel=1e-3)


def test_at_the_noise_batch_twice_the_fewest_steps_are_needed() -> None:
    law = StepsToTarget(500.0, 64.0, np.zeros((2, 2)), 0.1)
    assert law.steps(np.array([64.0])) == pytest.approx(1000)


def test_intervals_hold_the_next_run_as_often_as_they_say() -> None:
    rng, held = np.random.default_rng(0), []
    for _ in range(300):
        batches = np.repeat(BATCHES, 2)
        law = StepsToTarget.fit(batches, steps_at(batches) * np.exp(0.1 * rng.standard_normal(len(batches))))
        low, high = law.interval(np.array([128.0]), level=0.9)
        held.append(low[0] <= steps_at(np.array([128.0]))[0] * np.exp(0.1 * rng.standard_normal()) <= high[0])
    # 300 trials at 0.9 have a standard error of 0.017; three of them either way.
    assert 0.85 <= np.mean(held) <= 0.95


def test_one_run_that_never_settled_does_not_count_much() -> None:
    batches = np.repeat(BATCHES, 3)
    steps = steps_at(batches)
    steps[4] *= 20
    # Soft L1 bounds the pull of the broken run to that of a run 1 spread (10 %) away.
    assert StepsToTarget.fit(batches, steps).steps(np.array([128.0])) == pytest.approx(2562.5, rel=0.05)


def test_batches_far_above_the_noise_leave_it_open() -> None:
    batches = np.array([1e5, 2e5, 4e5])
    law = StepsToTarget.fit(batches, np.array([1000.0, 1000.0, 1000.0]))
    assert np.sqrt(law.log_covariance[1, 1]) > 1  # a factor of e at least


def test_time_to_accuracy_is_steps_times_seconds_with_both_spreads() -> None:
    law = StepsToTarget(1000.0, 200.0, np.zeros((2, 2)), 0.3)
    seconds = Prediction((0.1, 0.5, 0.9), np.array([[np.exp(-0.4 * 1.2815516), 1.0, np.exp(0.4 * 1.2815516)]]))
    time = time_to_accuracy(law, np.array([200.0]), seconds)
    assert time.at(0.5)[0] == pytest.approx(2000)
    assert time.at(0.9)[0] == pytest.approx(2000 * np.exp(0.5 * 1.2815516))  # 0.3^2 + 0.4^2 = 0.5^2


def test_certain_steps_and_seconds_make_a_certain_time() -> None:
    law = StepsToTarget(1000.0, 200.0, np.zeros((2, 2)), 0.0)
    time = time_to_accuracy(law, np.array([200.0]), Prediction((0.1, 0.5, 0.9), np.full((1, 3), 2.0)))
    assert time.values == pytest.approx(4000)


@pytest.mark.parametrize(
    ("batches", "steps", "message"),
    [
        ([32.0, 32.0], [1.0, 2.0], "batches hold 1 different sizes, expected at least 2"),
        ([32.0, 64.0], [1.0], r"batches have shape \(2,\) and steps \(1,\)"),
        ([32.0, 64.0], [1.0, 0.0], "steps hold a number that is not positive"),
        ([np.nan, 64.0], [1.0, 1.0], "batches hold a number that is not positive"),
    ],
)
def test_runs_that_tell_nothing_are_refused(batches: list[float], steps: list[float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        StepsToTarget.fit(np.array(batches), np.array(steps))


def test_other_questions_are_refused() -> None:
    law = StepsToTarget(1000.0, 200.0, np.zeros((2, 2)), 0.3)
    with pytest.raises(InvalidInputError, match="level is 1"):
        law.interval(np.array([1.0]), level=1.0)
    with pytest.raises(InvalidInputError, match="batches are 2, expected 1"):
        time_to_accuracy(law, np.ones(2), Prediction((0.1, 0.9), np.ones((1, 2))))
