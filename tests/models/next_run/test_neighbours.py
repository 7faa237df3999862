import numpy as np
import pandas as pd
import pytest

from crosswind.models.next_run.neighbours import Neighbours


def table(*rows: tuple[str, float, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["workload", "world_size", "config.offset"])


RAN = table(("bert", 1, -1.0), ("bert", 2, 1.0), ("bert", 4, -1.0), ("bert", 8, 1.0))


def test_a_row_that_ran_is_at_distance_zero_from_itself() -> None:
    places, distances = Neighbours().fit(RAN).nearest(RAN, 1)
    assert places[:, 0].tolist() == [0, 1, 2, 3]
    assert distances[:, 0] == pytest.approx(np.zeros(4), abs=1e-6)


def test_numbers_that_are_always_positive_are_compared_by_their_doublings() -> None:
    ran = RAN[["workload", "world_size"]]
    one, two, four, eight = Neighbours().fit(ran).distances(ran[:1]).ravel()
    assert one == pytest.approx(0, abs=1e-6)
    assert (four / two, eight / two) == pytest.approx((2, 3))


def test_what_is_far_outside_is_farther_than_what_is_usual() -> None:
    neighbours = Neighbours().fit(RAN)
    assert neighbours.distances(table(("bert", 3, 1.0))).min() < 1
    assert neighbours.distances(table(("bert", 512, 1.0))).min() > 2


def test_another_workload_counts_more_than_a_doubling() -> None:
    neighbours = Neighbours().fit(RAN)
    assert neighbours.distances(table(("gpt", 8, 1.0))).min() > neighbours.distances(table(("bert", 32, 1.0))).min() > 0


def test_two_unknown_names_are_as_far_as_two_known_ones() -> None:
    neighbours = Neighbours().fit(table(("bert", 1, 0.0), ("gpt", 1, 0.0)))
    other = neighbours.distances(table(("t5", 1, 0.0)))
    assert other.ravel() == pytest.approx(neighbours.distances(table(("bert", 1, 0.0)))[0, 1] * np.ones(2))


def test_missing_values_and_columns_are_differences_too() -> None:
    neighbours = Neighbours().fit(RAN)
    assert neighbours.distances(RAN[["workload", "world_size"]]).min() > 0
    assert np.isfinite(neighbours.distances(table(("bert", np.nan, np.nan)))).all()


def test_one_row_is_enough() -> None:
    _, distances = Neighbours().fit(RAN[:1]).nearest(table(("bert", 4, -1.0)), 5)
    assert distances.shape == (1, 1)
    assert distances[0, 0] == pytest.approx(2.0)


def test_rows_of_the_own_workload_come_before_nearer_ones_of_another() -> None:
    many = [("gpt", 2, 1.0), ("gpt", 4, 1.0)] * 20
    neighbours = Neighbours().fit(table(("bert", 2**20, 9.0), *many, ("bert", 2**21, 9.0)))
    places, distances = neighbours.nearest(table(("bert", 2, 1.0), ("gpt", 2, 1.0)), 3)
    assert places.tolist() == [[0, 41, 1], [1, 3, 5]]
    assert distances[0, 2] < distances[0, 0] < distances[0, 1]
    assert neighbours.nearest(table(("bert", 2, 1.0)), 1)[0].tolist() == [[0]]


def test_a_workload_that_never_ran_has_the_nearest_of_all() -> None:
    places, _ = Neighbours().fit(RAN).nearest(table(("gpt", 8, 1.0)), 1)
    assert places.tolist() == [[3]]
