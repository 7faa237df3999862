"""The expected growth of the dominated volume."""

import numpy as np
import pytest
from scipy.stats import norm
from tests.models.tuner.search.pareto.hypervolume import hypervolume

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.tuner.search.pareto.expected_improvement import expected_hypervolume_improvement as expected
from crosswind.models.tuner.study.front import on_front

SAMPLES = 1000


def random_front(count: int, width: int, rng: np.random.Generator) -> Floats:
    values = rng.random((count, width))
    return np.asarray(values[on_front(values)], np.float64)


def sampled(mean: Floats, deviation: Floats, front: Floats, behind: Floats) -> Floats:
    """The growth of the volume for many drawn objectives."""
    rng = np.random.default_rng(1)
    before = hypervolume(front, behind)
    draws = mean + deviation * rng.standard_normal((SAMPLES, len(mean)))
    return np.array([hypervolume(np.vstack([front, draw]), behind) - before for draw in draws])


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_mean_growth_of_the_volume(width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    front, behind = random_front(5, width, rng), np.full(width, 1.1)
    mean, deviation = rng.random(width), rng.uniform(0.05, 0.5, width)
    growth = sampled(mean, deviation, front, behind)
    error = growth.std() / np.sqrt(SAMPLES)
    # Twelve cases: 4.5 standard errors are exceeded once in 10 000 runs.
    assert expected(mean[None], deviation[None], front, behind)[0] == pytest.approx(
        growth.mean(), abs=4.5 * error + 1e-6
    )


def test_with_one_objective_it_is_expected_improvement() -> None:
    mean, deviation, best = 1.2, 0.4, 1.0
    gap = best - mean
    textbook = gap * norm.cdf(gap / deviation) + deviation * norm.pdf(gap / deviation)
    improvement = expected(np.array([[mean]]), np.array([[deviation]]), np.array([[best], [1.5]]), np.array([2.0]))
    assert improvement == pytest.approx([textbook])


def test_without_a_front_everything_before_the_reference_counts() -> None:
    improvement = expected(np.array([[0.25, 0.5]]), np.full((1, 2), 1e-9), np.empty((0, 2)), np.ones(2))
    assert improvement == pytest.approx([0.75 * 0.5])


def test_a_certain_dominated_candidate_is_worth_nothing() -> None:
    front = np.array([[0.2, 0.8], [0.5, 0.3]])
    assert expected(np.array([[0.6, 0.6]]), np.zeros((1, 2)), front, np.ones(2)) == pytest.approx([0.0], abs=1e-12)


def test_rows_behind_the_reference_take_nothing_away() -> None:
    candidates, spread = np.random.default_rng(0).random((5, 2)), np.full((5, 2), 0.2)
    inside, behind = np.array([[0.4, 0.4]]), np.ones(2)
    outside = np.vstack([inside, [[0.2, 3.0], [5.0, 0.1]]])
    assert expected(candidates, spread, outside, behind) == pytest.approx(expected(candidates, spread, inside, behind))


def test_many_candidates_are_each_scored_as_if_alone() -> None:
    rng = np.random.default_rng(2)
    means, deviations = rng.random((5000, 2)), rng.uniform(0.1, 0.3, (5000, 2))
    front, behind = random_front(30, 2, rng), np.full(2, 1.2)
    scores = expected(means, deviations, front, behind)
    assert scores.shape == (5000,)
    for index in (0, 2047, 2048, 4999):
        one = slice(index, index + 1)
        assert scores[index] == pytest.approx(expected(means[one], deviations[one], front, behind)[0])


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="reference"):
        expected(np.zeros((3, 2)), np.ones((3, 2)), np.zeros((2, 2)), np.ones(3))
