"""The ranks that would be traced in recorded faults of runs with four ranks."""

import pytest
from benchmarks.accuracy_captures import FOLDER, judged, wilson


@pytest.mark.parametrize(
    ("name", "faults", "right", "first"),
    [
        ("development_1", 35, 34, 32),
        ("development_2", 45, 45, 45),
        ("development_3", 44, 42, 40),
        ("development_4", 44, 43, 41),
        ("held_out_1", 37, 36, 36),
        ("held_out_2", 44, 44, 44),
    ],
)
def test_the_culprit_is_among_the_traced_ranks_as_often_as_when_it_was_first_asked(
    name: str, faults: int, right: int, first: int
) -> None:
    figures = judged(name, FOLDER / name)
    assert figures[f"{name}_faults_of_a_rank_of_4"] == faults
    assert figures[f"{name}_right_of_4"] >= right
    assert figures[f"{name}_first_of_4"] >= first


def test_the_interval_of_a_share_is_wilsons() -> None:
    low, high = wilson(8, 10)
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)
    assert wilson(0, 0) == (0.0, 1.0)
