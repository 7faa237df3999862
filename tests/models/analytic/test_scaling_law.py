import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.scaling_law import ScalingLaw

RANKS = np.array([1.0, 2, 4, 8, 16, 32])


def test_the_law_by_hand() -> None:
    law = ScalingLaw(1.0, 8.0, 0.5, 0.1)
    assert law.seconds(np.array([1.0, 4.0])) == pytest.approx([9.0, 1 + 2 + 1 + 0.3])


@pytest.mark.parametrize("law", [ScalingLaw(1.0, 8.0, 0.0, 0.0), ScalingLaw(0.5, 20.0, 0.25, 0.01)])
def test_exact_times_give_the_law_back(law: ScalingLaw) -> None:
    fitted = ScalingLaw.fit(RANKS, law.seconds(RANKS))
    assert fitted.seconds(np.array([1024.0])) == pytest.approx(law.seconds(np.array([1024.0])), rel=1e-6)


def test_one_broken_run_does_not_bend_the_law() -> None:
    law = ScalingLaw(1.0, 8.0, 0.0, 0.0)
    ranks = np.tile(RANKS, 2)
    seconds = law.seconds(ranks)
    seconds[3] *= 10
    # Left of the outlier is what the reweighting has not yet taken off: far less than the 10-fold itself.
    assert ScalingLaw.fit(ranks, seconds).seconds(np.array([8.0])) == pytest.approx(2.0, rel=0.02)


@given(seconds=st.lists(st.floats(0.01, 100), min_size=6, max_size=6))
def test_no_constant_is_negative(seconds: list[float]) -> None:
    law = ScalingLaw.fit(RANKS, np.array(seconds))
    assert min(law.serial_seconds, law.parallel_seconds, law.tree_seconds, law.crosstalk_seconds) >= 0


def test_crosstalk_makes_more_ranks_slower_in_the_end() -> None:
    assert ScalingLaw(0.0, 100.0, 0.0, 1.0).fastest_ranks(64) == 10  # sqrt(q / k)


@pytest.mark.parametrize(
    ("ranks", "seconds", "message"),
    [
        ([1.0, 2.0], [1.0], r"ranks have shape \(2,\) and seconds \(1,\)"),
        ([], [], "n at least 1"),
        ([0.0], [1.0], "ranks hold 0.0, expected 1 or more"),
        ([1.0], [0.0], "seconds hold 0.0, expected positive"),
    ],
)
def test_impossible_times_are_refused(ranks: list[float], seconds: list[float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ScalingLaw.fit(np.array(ranks), np.array(seconds))
