"""The way of one row down all trees at once is scikit-learn's own."""

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor

from crosswind.models.tuner.variants.experience import Context
from crosswind.models.tuner.variants.likeness import Likeness, Trees


def table(rows: int) -> np.ndarray:
    return np.random.default_rng(rows).normal(size=(rows, 4))


def test_a_row_ends_in_the_leaves_that_the_forest_names() -> None:
    features = table(60)
    forest = ExtraTreesRegressor(7, random_state=0).fit(features, features[:, :2] ** 2)
    trees = Trees.of(forest)
    for row in table(20):
        assert (trees.leaves(row) - trees.roots).tolist() == forest.apply(row[None])[0].tolist()


def test_weights_are_those_of_the_forest_s_own_prediction() -> None:
    features, costs = table(50), table(50)[:, :3]
    contexts = [Context(str(place), dict(zip("abcd", row, strict=True))) for place, row in enumerate(features.tolist())]
    likeness = Likeness.of(contexts, costs, seed=0)
    weights = likeness.weights(contexts[3])
    assert weights.sum() == 1
    assert weights.argmax() == 3
    assert len(weights) == 50
