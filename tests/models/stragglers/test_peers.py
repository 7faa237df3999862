import numpy as np
import pytest

from crosswind.models.stragglers.peers import lags, others_median


@pytest.mark.parametrize("count", range(2, 9))
def test_it_is_the_median_of_all_but_itself(count: int) -> None:
    values = np.random.default_rng(count).integers(0, 5, (50, count)).astype(float)  # with many ties
    plain = [[np.median(np.delete(row, place)) for place in range(count)] for row in values]
    assert others_median(values) == pytest.approx(np.array(plain))


def test_of_two_each_lags_behind_the_other() -> None:
    assert lags(np.array([1.0, 3.0])).tolist() == [-2.0, 2.0]
