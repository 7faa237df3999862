from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.shares import Pace, batch_shares, slowest_seconds

PACES = st.lists(st.builds(Pace, st.floats(0.01, 10), st.floats(0, 5)), min_size=1, max_size=3)


def test_equal_ranks_share_equally() -> None:
    assert batch_shares([Pace(0.1)] * 4, 32) == [8, 8, 8, 8]


def test_a_rank_half_as_fast_gets_half() -> None:
    assert batch_shares([Pace(0.1), Pace(0.2)], 30) == [20, 10]


def test_what_a_rank_needs_anyway_counts() -> None:
    assert batch_shares([Pace(0.1), Pace(0.1, fixed_seconds=1.0)], 30) == [20, 10]


def test_a_hopeless_rank_gets_one_sample_and_none_when_that_is_allowed() -> None:
    paces = [Pace(0.1), Pace(100.0)]
    assert batch_shares(paces, 30) == [29, 1]
    assert batch_shares(paces, 30, allow_none=True) == [30, 0]


@given(paces=PACES, batch=st.integers(3, 12), allow_none=st.booleans())
def test_no_other_shares_are_faster(paces: list[Pace], batch: int, allow_none: bool) -> None:
    shares = batch_shares(paces, batch, allow_none=allow_none)
    least = 0 if allow_none else 1
    assert sum(shares) == batch
    assert min(shares) >= least
    others = (other for other in product(range(least, batch + 1), repeat=len(paces)) if sum(other) == batch)
    fastest = min(slowest_seconds(paces, other) for other in others)
    # The search for the time stops at 1e-9 of a sample.
    assert slowest_seconds(paces, shares) <= fastest * (1 + 1e-6)


def test_a_million_samples_on_a_thousand_ranks_sum_up() -> None:
    paces = [Pace(0.01 * (1 + rank % 7)) for rank in range(1000)]
    assert sum(batch_shares(paces, 1_000_000)) == 1_000_000


def test_impossible_batches_and_paces_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="batch is 1 for 2 ranks, expected at least one sample each"):
        batch_shares([Pace(1.0), Pace(1.0)], 1)
    with pytest.raises(InvalidInputError, match="ranks is 0"):
        batch_shares([], 4)
    with pytest.raises(InvalidInputError, match="seconds_a_sample is 0"):
        Pace(0)
