from itertools import pairwise

import pytest

from crosswind.ingest.injected.loop import WatchedLoop
from crosswind.ingest.injected.repetition import MOST, Repetition, period_of


def ends(repetition: Repetition, events: str) -> list[int]:
    return [place for place, event in enumerate(events) if repetition.ends_step(event)]


@pytest.mark.parametrize(
    ("events", "period"),
    [
        ("", None),
        ("aaaaaaaa", 1),
        ("abcabcabcabcabcabc", 3),
        ("xyzz" + "aab" * 6, 3),
        ("abcdefgh", None),
        ("aaab" * 8, 4),
    ],
)
def test_the_period_is_the_shortest_pattern_that_repeats_after_the_beginning(events: str, period: int | None) -> None:
    assert period_of(list(events)) == period


def test_a_step_ends_with_every_whole_pattern_once_it_is_known() -> None:
    places = ends(Repetition(16), "abb" * 30)
    assert {after - before for before, after in pairwise(places)} == {3}
    assert places[0] <= 32


def test_ranks_with_the_same_collectives_end_their_steps_at_the_same_ones() -> None:
    events = "init" + "gssr" * 40
    assert ends(Repetition(16), events) == ends(Repetition(16), events) != []


def test_after_another_phase_the_pattern_is_looked_for_again() -> None:
    repetition = Repetition(8)
    assert ends(repetition, "ab" * 8)
    assert ends(repetition, "eval") == []
    assert ends(repetition, "cd" * 16)


def test_what_never_repeats_ends_no_step_and_takes_no_more_memory() -> None:
    repetition = Repetition(8)
    assert not any(repetition.ends_step(number) for number in range(2 * MOST))
    assert len(repetition._seen) == MOST


def test_arguments_that_have_no_size_end_the_watching_and_not_the_training() -> None:
    loop = WatchedLoop(learns=lambda: True, mark=lambda: None)
    loop.collective_launched(lambda: ("all_reduce", len(None)))  # type: ignore[arg-type]
    assert loop.is_over
    assert not loop.counts_calls
