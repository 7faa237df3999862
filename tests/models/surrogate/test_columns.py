import numpy as np
import pandas as pd

from crosswind.models.surrogate.columns import Columns

MIXED = pd.DataFrame({"ranks": [1.0, 2.0, 4.0], "milestones": pd.Series([None, None, "[800]"], dtype=object)})


def test_a_text_that_is_missing_in_every_row_learned_from_is_still_no_number() -> None:
    columns = Columns.of(MIXED[:2])
    assert columns.names == ("ranks",)
    assert columns.matrix(MIXED).tolist() == [[1.0], [2.0], [4.0]]


def test_numbers_that_are_all_missing_are_numbers() -> None:
    columns = Columns.of(pd.DataFrame({"rate": [np.nan, np.nan]}))
    assert columns.matrix(pd.DataFrame({"rate": [0.5]})).tolist() == [[0.5]]


def test_a_table_is_aligned_with_the_columns_learned_from() -> None:
    columns = Columns.of(MIXED)
    asked = pd.DataFrame({"ranks": ["8", "many"], "other": [1, 2]})
    matrix = columns.matrix(columns.aligned(asked))
    assert matrix[0, 0] == 8
    assert np.isnan(matrix[1, 0])
    assert np.isnan(matrix[:, 1]).all()
