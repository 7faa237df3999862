import numpy as np
import pandas as pd
import pytest

from crosswind.models.surrogate.mixed_table import REACH, MixedTable


def test_numbers_far_beyond_those_learned_from_count_as_reach_beyond_them() -> None:
    table = pd.DataFrame({"ranks": [1.0, 2.0, 4.0, 8.0], "warmup": [0.0, 0.0, 0.0, 1.0]})
    rules = MixedTable.of(table)
    learned = rules.points(table).numbers
    far = rules.points(pd.DataFrame({"ranks": [2.0**40, 16.0], "warmup": [-5000.0, 0.0]})).numbers
    span = np.ptp(learned[:, 0])  # of ranks, which are taken by logarithm
    assert far[0] == pytest.approx([learned[:, 0].max() + REACH * span, learned[:, 1].min() - REACH])
    step = learned[3, 0] - learned[2, 0]
    assert far[1, 0] == pytest.approx(learned[3, 0] + step)  # near values extrapolate as before


def test_missing_numbers_are_the_mean() -> None:
    rules = MixedTable.of(pd.DataFrame({"ranks": [1.0, 8.0]}))
    assert rules.points(pd.DataFrame({"ranks": [np.nan]})).numbers.tolist() == [[0.0]]
