"""The ratio to the sources."""

import numpy as np
import pandas as pd
import pytest

from crosswind.models.transfer.anchored import RATIO_DEVIATION, AnchoredTransfer, robust_line


def test_without_an_anchor_nothing_is_moved_and_all_is_uncertain() -> None:
    line = robust_line(np.empty(0), np.empty(0))
    assert line(np.array([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert line.shift_deviation == RATIO_DEVIATION


def test_one_anchor_is_believed_but_for_its_noise() -> None:
    line = robust_line(np.array([2.0]), np.array([3.0]))
    assert line.shift == pytest.approx(1 / (1 + 0.05**2))  # noise of 5 % against a prior of deviation 1
    assert line.bend == pytest.approx(0.0)


def test_one_wild_anchor_of_five_hardly_moves_the_ratio() -> None:
    source = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    target = source + np.array([0.5, 0.52, 0.48, 0.5, 5.0])
    assert robust_line(source, target)(np.array([2.0]))[0] == pytest.approx(2.5, abs=0.1)


def test_many_anchors_bend_the_line() -> None:
    source = np.linspace(0, 4, 40)
    line = robust_line(source, 1 + 1.5 * source)
    assert line(np.array([0.0, 4.0])) == pytest.approx([1.0, 7.0], abs=0.05)


def test_sources_of_other_speeds_are_learned_for_what_they_have_in_common() -> None:
    rows = pd.DataFrame({"batch": np.tile([8.0, 16.0, 32.0, 64.0], 20), "system": np.repeat(["fast", "slow"], 40)})
    seconds = 100 / rows["batch"].to_numpy() * np.where(rows["system"] == "slow", 50.0, 1.0)
    asked = pd.DataFrame({"batch": [8.0, 64.0], "system": "new"})
    model = AnchoredTransfer(source_column="system").fit(rows, seconds, asked.iloc[:0], np.empty(0))
    eight, sixty_four = model.predict(asked).at(0.5)
    assert eight / sixty_four == pytest.approx(8.0, rel=0.05)  # trees stop 0.9^100 short of the leaves' values
    assert eight == pytest.approx(12.5 * 50**0.5, rel=0.05)  # halfway, in ratios, between the two systems
