from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.analytic.machine.collectives import (
    ALL_REDUCES,
    Group,
    all_gather,
    all_to_all,
    best_all_reduce,
    broadcast,
    hierarchical_all_reduce,
    reduce_scatter,
    ring_all_reduce,
    tree_all_reduce,
)
from crosswind.models.analytic.machine.links import Link

INSIDE, BETWEEN = Link(1e-5, 1e11), Link(2e-5, 5e10)
EVERY = pytest.mark.parametrize("seconds", [*ALL_REDUCES.values(), all_gather, reduce_scatter, all_to_all, broadcast])
SIZES = st.floats(0, 1e12)
RANKS = st.integers(1, 4096)


def group(ranks: int, ranks_a_node: int = 8, sharers: int = 1) -> Group:
    return Group(ranks, ranks_a_node, INSIDE, BETWEEN, sharers)


def test_a_ring_of_four_by_hand() -> None:
    assert ring_all_reduce(4e8, group(4)) == pytest.approx(6 * 1e-5 + 1.5 * 4e8 / 1e11)


def test_a_ring_through_nodes_goes_at_the_pace_of_the_network() -> None:
    assert ring_all_reduce(16e8, group(16)) == pytest.approx(30 * 2e-5 + 30 / 16 * 16e8 / 5e10)


def test_a_double_tree_of_eight_by_hand() -> None:
    assert tree_all_reduce(1e8, group(8)) == pytest.approx(6 * 1e-5 + 2 * 1e8 / 1e11)


def test_a_hierarchy_of_two_nodes_by_hand() -> None:
    inside = 2 * (7 * 1e-5 + 7 / 8 * 8e8 / 1e11)
    between = 2 * 2e-5 + 8e8 / 5e10  # 2 (N - 1)/N = 1
    assert hierarchical_all_reduce(8e8, group(16)) == pytest.approx(inside + between)


def test_gathering_is_half_a_ring() -> None:
    assert 2 * all_gather(1e7, group(8)) == ring_all_reduce(1e7, group(8))
    assert reduce_scatter(1e7, group(8)) == all_gather(1e7, group(8))


def test_all_to_all_waits_for_what_leaves_the_node() -> None:
    assert all_to_all(1.6e9, group(8)) == pytest.approx(7 * 1e-5 + 1.6e9 * 7 / 8 / 1e11)
    assert all_to_all(1.6e9, group(16)) == pytest.approx(15 * 2e-5 + 8 * 1.6e9 * 8 / 16 / 5e10)


def test_a_short_broadcast_goes_by_tree_and_a_long_one_in_parts() -> None:
    assert broadcast(1.0, group(8)) == pytest.approx(3 * (1e-5 + 1e-11))
    assert broadcast(1e9, group(8)) == pytest.approx((3 + 7) * 1e-5 + 2 * 7 / 8 * 1e9 / 1e11)


def test_groups_that_share_a_network_connection_halve_it() -> None:
    alone, shared = (all_gather(1e9, group(16, sharers=sharers)) - 15 * 2e-5 for sharers in (1, 2))
    assert shared == pytest.approx(2 * alone)


def test_small_sizes_choose_the_tree_large_ones_a_ring() -> None:
    assert best_all_reduce(1e3, group(64)).algorithm == "tree"
    assert best_all_reduce(1e10, group(8)).algorithm == "ring"
    assert best_all_reduce(1e9, Group(64, 8, Link(1e-5, 1e12), BETWEEN)).algorithm == "hierarchical"


@EVERY
@given(n_bytes=SIZES)
def test_one_rank_has_nobody_to_wait_for(seconds: Callable[[float, Group], float], n_bytes: float) -> None:
    assert seconds(n_bytes, group(1)) == 0


@EVERY
@given(n_bytes=SIZES, more=SIZES, ranks=RANKS)
def test_more_bytes_never_take_less(
    seconds: Callable[[float, Group], float], n_bytes: float, more: float, ranks: int
) -> None:
    assert seconds(n_bytes + more, group(ranks)) >= seconds(n_bytes, group(ranks))


@EVERY
@given(n_bytes=SIZES, nodes=st.integers(1, 512))
def test_more_nodes_never_take_less(seconds: Callable[[float, Group], float], n_bytes: float, nodes: int) -> None:
    # Relative 1e-9 is what rounding leaves where both are equal.
    assert seconds(n_bytes, group(8 * nodes + 8)) >= seconds(n_bytes, group(8 * nodes)) * (1 - 1e-9)


@given(n_bytes=SIZES, ranks=RANKS)
def test_the_best_is_as_fast_as_any(n_bytes: float, ranks: int) -> None:
    best = best_all_reduce(n_bytes, group(ranks))
    assert best.seconds == min(seconds(n_bytes, group(ranks)) for seconds in ALL_REDUCES.values())


@given(ranks=st.integers(2, 4096))
def test_no_all_reduce_beats_the_bound_of_its_bandwidth(ranks: int) -> None:
    flat = Group(ranks, ranks, INSIDE, BETWEEN)
    bound = 2 * (ranks - 1) / ranks * 1e9 / INSIDE.bytes_per_second  # Patarasuk and Yuan 2009
    assert best_all_reduce(1e9, flat).seconds >= bound


def test_impossible_groups_and_sizes_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="ranks is 0, expected a whole number of 1 or more"):
        group(0)
    with pytest.raises(InvalidInputError, match="n_bytes is -1"):
        ring_all_reduce(-1, group(2))
