from itertools import permutations

import pytest

from crosswind.data.store.node_intervals import FOREVER, NodeInterval, Stretch, stretches


def test_a_stay_alone_is_one_stretch() -> None:
    assert stretches([NodeInterval("n1", 10, 20)], []) == [Stretch("n1", 10, 20, 0)]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_stay_is_cut_where_others_come_and_go(order: tuple[int, ...]) -> None:
    others = [("a", NodeInterval("n1", 0, 15)), ("b", NodeInterval("n1", 12, 18)), ("c", NodeInterval("n2", 0, 99))]
    assert stretches([NodeInterval("n1", 10, 30)], [others[place] for place in order]) == [
        Stretch("n1", 10, 12, 1),
        Stretch("n1", 12, 15, 2),
        Stretch("n1", 15, 18, 1),
        Stretch("n1", 18, 30, 0),
    ]


def test_overlapping_stays_are_counted_once() -> None:
    mine = [
        NodeInterval("n1", 10, 20),
        NodeInterval("n1", 15, 25),
        NodeInterval("n1", 25, 30),
        NodeInterval("n2", 40, FOREVER),
    ]
    assert stretches(mine, []) == [Stretch("n1", 10, 30, 0), Stretch("n2", 40, FOREVER, 0)]


def test_two_stays_of_one_other_job_are_one_job() -> None:
    others = [("a", NodeInterval("n1", 0, 20)), ("a", NodeInterval("n1", 10, 30))]
    assert stretches([NodeInterval("n1", 5, 40)], others) == [Stretch("n1", 5, 30, 1), Stretch("n1", 30, 40, 0)]


def test_who_ends_when_i_begin_shares_nothing() -> None:
    others = [
        ("a", NodeInterval("n1", 0, 10)),
        ("b", NodeInterval("n1", 20, 30)),
        ("c", NodeInterval("n1", 15, 15)),
        ("d", NodeInterval("n1", 9, 3)),
    ]
    assert stretches([NodeInterval("n1", 10, 20)], others) == [Stretch("n1", 10, 20, 0)]


def test_a_stay_without_time_is_none() -> None:
    assert stretches([NodeInterval("n1", 10, 10)], [("a", NodeInterval("n1", 0, 20))]) == []
