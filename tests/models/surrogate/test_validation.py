import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.surrogate.validation import LeaveGroupOut, SmallToLarge, Split, TimeOrdered

TABLE = pd.DataFrame({"ranks": [1.0, 2, 4, 8, 16, 32, 64, np.nan], "site": ["a", "a", "a", "b", "b", "c", None, "d"]})


@pytest.mark.parametrize(
    "split", [TimeOrdered(), LeaveGroupOut("site"), LeaveGroupOut("site", 2), SmallToLarge("ranks")]
)
def test_no_row_is_learned_from_and_asked_about_at_once(split: Split) -> None:
    pairs = list(split.pairs(TABLE))
    assert pairs
    for training, asked in pairs:
        assert asked.any()
        assert training.any()
        assert not np.any(training & asked)


def test_later_parts_are_asked_about_knowing_only_what_came_before() -> None:
    _, second, third = TimeOrdered(4).pairs(TABLE)
    assert [np.flatnonzero(rows).tolist() for rows in second] == [[0, 1, 2, 3], [4, 5]]
    assert [np.flatnonzero(rows).tolist() for rows in third] == [[0, 1, 2, 3, 4, 5], [6, 7]]


def test_a_group_is_never_divided_and_every_row_is_asked_about_once() -> None:
    split = LeaveGroupOut("site", 3)
    asked = np.array([asked for _, asked in split.pairs(TABLE)])
    assert asked.sum(axis=0).tolist() == [1] * 8
    for site in ("a", "b"):
        rows = (TABLE["site"] == site).to_numpy()
        assert {tuple(column) for column in asked[:, rows].T.tolist()} == {tuple(asked[:, rows][:, 0].tolist())}


def test_folds_are_about_equal_in_rows() -> None:
    folds = LeaveGroupOut("site", 3).folds(TABLE)
    assert sorted(np.bincount(folds).tolist()) == [2, 3, 3]


def test_the_large_are_asked_about_knowing_the_small() -> None:
    [(training, asked)] = SmallToLarge("ranks", test_ratio=0.3, gap=4).pairs(TABLE)
    assert TABLE["ranks"][asked].tolist() == [32, 64]
    assert TABLE["ranks"][training].tolist() == [1, 2, 4]


def test_rows_of_one_scale_put_no_question_of_scale() -> None:
    assert list(SmallToLarge("ranks").pairs(TABLE.assign(ranks=8.0))) == []
    assert list(SmallToLarge("ranks").pairs(TABLE.assign(ranks=np.nan))) == []


def test_a_new_row_tells_which_question_it_puts() -> None:
    asked = pd.DataFrame({"ranks": [64.0, 65.0, np.nan], "site": ["a", "z", None]})
    questions: tuple[Split, ...] = (SmallToLarge("ranks"), LeaveGroupOut("site"), TimeOrdered())
    novel = [split.is_novel(split.memory(TABLE), asked).tolist() for split in questions]
    assert novel == [[False, True, False], [False, True, False], [True, True, True]]


@pytest.mark.parametrize("split", [LeaveGroupOut("system"), SmallToLarge("system")])
def test_a_column_that_is_not_there_is_named(split: Split) -> None:
    with pytest.raises(InvalidInputError, match="columns ranks, site, expected system too"):
        list(split.pairs(TABLE))


def test_a_scale_that_few_rows_reach_is_still_novel() -> None:
    split = SmallToLarge("ranks")
    asked = pd.DataFrame({"ranks": [2.0, 8.0, 16.0]})
    few = pd.DataFrame({"ranks": [2.0] * 97 + [8.0] * 3})
    assert split.is_novel(split.memory(few), asked).tolist() == [False, True, True]
    enough = pd.DataFrame({"ranks": [2.0] * 90 + [8.0] * 10})
    assert split.is_novel(split.memory(enough), asked).tolist() == [False, False, True]
