import numpy as np
import pytest
import xgboost as xgb

from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate.trees import Trees


def booster_of(rows: Floats, target: Floats, **parameters: object) -> xgb.Booster:
    made = {"max_depth": 4, "nthread": 1, **parameters}
    return xgb.train(made, xgb.QuantileDMatrix(rows, label=target, nthread=1), num_boost_round=20)


@pytest.fixture
def rows() -> Floats:
    """Numbers of which some are missing, and a column that holds few values."""
    random = np.random.default_rng(0)
    numbers = random.normal(size=(300, 3))
    numbers[random.random((300, 3)) < 0.1] = np.nan
    return np.column_stack([numbers, random.integers(0, 2, 300)])


@pytest.mark.parametrize(
    "parameters",
    [{"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.5, 0.9]}, {"objective": "reg:squarederror"}],
)
def test_they_predict_what_the_booster_predicts(rows: Floats, parameters: dict[str, object]) -> None:
    target = np.nan_to_num(rows[:, 0]) + 0.3 * rows[:, 3]
    booster = booster_of(rows, target, **parameters)
    expected = booster.inplace_predict(rows)
    assert Trees.of(booster, 4).inplace_predict(rows) == pytest.approx(expected, rel=1e-5, abs=1e-5)  # 32 bits


def test_trees_of_a_single_leaf_predict_it() -> None:
    booster = booster_of(np.ones((4, 1)), np.full(4, 2.0))
    assert Trees.of(booster, 1).inplace_predict(np.array([[1.0], [np.nan]])) == pytest.approx([2.0, 2.0], rel=1e-5)


def test_no_rows_give_no_predictions(rows: Floats) -> None:
    trees = Trees.of(booster_of(rows, np.nan_to_num(rows[:, 0])), 4)
    assert trees.inplace_predict(np.empty((0, 4))).shape == (0,)
