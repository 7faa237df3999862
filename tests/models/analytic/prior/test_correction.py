import numpy as np
import pytest

from crosswind.data.schema.prediction import Floats
from crosswind.models.analytic.prior.corrected import CORRECTIONS
from crosswind.models.analytic.prior.correction import Correction, NoCorrection, ProcessCorrection, TreeCorrection
from crosswind.models.registry.archive import read_model, write_model
from crosswind.models.surrogate.surrogate import NotFittedError

EVERY = pytest.mark.parametrize("make", CORRECTIONS)
LEARNING = pytest.mark.parametrize("make", [ProcessCorrection, TreeCorrection])


def points(count: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).uniform(-1.5, 1.5, size=(count, 2))


def truth(features: Floats) -> Floats:
    """Formulas are 30 % off one way on one side, the other way on the other; the second feature means nothing."""
    return np.asarray(0.3 * np.tanh(2 * features[:, 0]), np.float64)


@LEARNING
def test_it_learns_what_the_formulas_miss(make: type[Correction]) -> None:
    training, asked = points(300), points(100, seed=1)
    correction = make().fit(training, truth(training)).predict(asked)
    assert np.mean(np.abs(correction.log_ratio - truth(asked))) < 0.03  # a tenth of what the formulas are off


@EVERY
def test_far_from_all_runs_it_says_nothing_but_that_formulas_may_be_off(make: type[Correction]) -> None:
    training = points(200)
    correction = make().fit(training, truth(training)).predict(np.array([[300.0, 0.0]]))
    assert correction.log_ratio == pytest.approx(0, abs=1e-3)
    assert correction.openness == pytest.approx(1, abs=1e-3)
    off = np.sqrt(np.mean(truth(training) ** 2))
    assert correction.spread[0] > 0.99 * off


@pytest.mark.thorough
@EVERY
def test_spreads_hold_new_runs_as_often_as_a_normal_does(make: type[Correction]) -> None:
    training, asked = points(300), points(300, seed=1)
    noise = 0.05 * np.random.default_rng(2).standard_normal((2, 300))
    correction = make().fit(training, truth(training) + noise[0]).predict(asked)
    inside = np.abs(truth(asked) + noise[1] - correction.log_ratio) < 1.645 * correction.spread
    # 0.9 with a standard error of 0.017; the formulas' own errors are no normal ones, hence the room above.
    assert 0.83 <= np.mean(inside) <= 1.0


@EVERY
def test_the_same_seed_and_rows_give_the_same_answer(make: type[Correction]) -> None:
    training = points(80)
    first, second = (make().fit(training, truth(training)).predict(training).log_ratio for _ in range(2))
    assert np.array_equal(first, second)


@EVERY
def test_saved_and_read_again_it_says_the_same(make: type[Correction]) -> None:
    training = points(60)
    correction = make().fit(training, truth(training))
    again = read_model(write_model(correction))
    assert np.array_equal(again.predict(training).log_ratio, correction.predict(training).log_ratio)


@EVERY
def test_four_rows_on_one_point_are_enough(make: type[Correction]) -> None:
    correction = make().fit(np.zeros((4, 2)), np.full(4, 0.2)).predict(np.zeros((1, 2)))
    assert np.all(np.isfinite([correction.log_ratio[0], correction.spread[0], correction.openness[0]]))


def test_trees_are_refused_before_they_learned() -> None:
    with pytest.raises(NotFittedError, match=r"TreeCorrection\.predict came before fit"):
        TreeCorrection().predict(points(1))


def test_no_correction_is_none() -> None:
    assert NoCorrection().fit(points(5), np.full(5, 0.2)).predict(points(3)).log_ratio == pytest.approx(0)
