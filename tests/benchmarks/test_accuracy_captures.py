"""The ranks that would be traced in recorded faults of runs with four ranks, on which the rules were not made."""

from benchmarks.accuracy_captures import HELD_OUT, judged, wilson


def test_the_culprit_is_among_the_traced_ranks_as_often_as_when_it_was_first_asked() -> None:
    figures = judged("held_out", HELD_OUT)
    assert figures["held_out_faults_of_a_rank_of_4"] == 35
    assert figures["held_out_right_of_4"] >= 32
    assert figures["held_out_first_of_4"] >= 29


def test_the_interval_of_a_share_is_wilsons() -> None:
    low, high = wilson(8, 10)
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)
    assert wilson(0, 0) == (0.0, 1.0)
