import pytest

from crosswind.ingest.preflight.network import rounds


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 13])
def test_every_pair_meets_once_and_nobody_is_in_two_pairs_of_a_round(count: int) -> None:
    players = [10 * player for player in range(count)]
    schedule = rounds(players)
    met = [pair for round_ in schedule for pair in round_]
    assert sorted(met) == [(a, b) for a in players for b in players if a < b]
    for round_ in schedule:
        busy = [player for pair in round_ for player in pair]
        assert len(busy) == len(set(busy))
        assert len(round_) == count // 2
    assert len(schedule) == count - 1 + count % 2


def test_fewer_than_two_have_nobody_to_meet() -> None:
    assert rounds([]) == rounds([3]) == []
