import numpy as np
import pytest
from tests.models.forecast.runs import CHECKPOINT, steps

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.forecast.profile import StepProfile, lengthened, periodic, shape_of


def test_a_profile_holds_the_level_of_the_calm_runs_and_the_slow_steps() -> None:
    runs = [steps(seed) for seed in range(10)] + [steps(seed, fault=3.0) for seed in range(10, 16)]
    profile = StepProfile.of(runs)
    # A mean of the fastest 6 of 16 runs of 60 steps with 10 % noise: the standard error is 0.5 %, and choosing the
    # fastest lowers it by about one of a run's 1.3 %.
    assert profile.usual == pytest.approx(0.1, rel=0.04)
    assert profile.shape[[19, 39, 59]] == pytest.approx([CHECKPOINT] * 3, rel=0.15)  # medians of 16, 3 % each
    assert np.sum(profile.shape != 1.0) < 3 + 0.2 * 57  # two deviations of noise: about one step in twenty


def test_slow_steps_that_come_back_are_found() -> None:
    assert periodic(np.where(np.arange(100) % 10 == 7, 3.0, 1.0)) == (10, 7, 3.0)


def test_slow_steps_that_do_not_come_back_are_not_periodic() -> None:
    values = np.ones(100)
    values[[3, 17, 44, 90]] = 5.0
    assert periodic(values) is None


def test_a_longer_run_goes_on_with_the_period() -> None:
    shape = np.where(np.arange(60) % 20 == 19, 4.0, 1.0)
    longer = lengthened(shape, 100)
    assert np.flatnonzero(longer > 1).tolist() == [19, 39, 59, 79, 99]


@pytest.mark.parametrize("first", [0, 10, 59, 60, 79, 80, 150])
@pytest.mark.parametrize("end", [0, 19, 20, 60, 80, 99, 100, 153])
def test_the_sum_of_a_stretch_is_that_of_its_steps(first: int, end: int) -> None:
    profile = StepProfile.of([np.where(np.arange(60) % 20 == 19, 4.0, 1.0)] * 3)
    assert profile.between(0, 100).tolist() == lengthened(profile.shape, 100).tolist()
    stretch = profile.between(first, end)
    assert len(stretch) == max(end - first, 0)
    assert profile.sum_between(first, end) == pytest.approx(stretch.sum())


def test_steps_on_whose_time_runs_do_not_agree_are_ordinary() -> None:
    runs = [np.ones(30) for _ in range(8)]
    for index, run in enumerate(runs):
        run[index] = 9.0
    assert shape_of(runs).tolist() == [1.0] * 30


@pytest.mark.parametrize("runs", [[], [np.array([])], [np.array([1.0, -1.0])], [np.array([1.0, np.inf])]])
def test_what_are_no_steps_is_refused(runs: list[np.ndarray]) -> None:
    with pytest.raises(InvalidInputError):
        StepProfile.of(runs)
