"""Repeats after a pause of months."""

import numpy as np
import pytest

from crosswind.data.schema.question import Question
from crosswind.models.next_run.cohort_store import Cohort, EndedRun
from crosswind.models.next_run.new_cohort_model import CAUTIOUS, around
from crosswind.models.next_run.pauses import PAUSE_NS, PAUSES_MIN, Pauses, has_paused
from crosswind.models.surrogate import LEVELS

DAY_NS = 24 * 3600 * 10**9
TIGHT = around(np.array([100.0, 100.0]), 0.01 * np.sign(CAUTIOUS), np.zeros(2))


def cohort(*runs: tuple[float, float]) -> Cohort:
    """A cohort of runs (day of its start, seconds)."""
    made = Cohort(Question("w", "s", {}, 4))
    for place, (day, seconds) in enumerate(runs):
        made.add(made.question, EndedRun(f"r{place}", int(day * DAY_NS), seconds))
    return made


def paused(ratio: float) -> Cohort:
    return cohort((0, 100.0), (1, 100.0), (200, 100.0 * ratio), (201, 100.0 * ratio))


def test_a_band_after_a_pause_is_as_wide_as_pauses_changed_others_and_its_median_stays() -> None:
    ratios = np.exp(np.linspace(-0.3, 0.3, 21))
    prediction = Pauses().fit(map(paused, ratios)).widened(TIGHT, [True, False])
    widths = np.log(prediction.at(0.95) / prediction.at(0.05))
    assert 0.45 < widths[0] < 0.65
    assert widths[1] == pytest.approx(0.02)
    assert prediction.at(0.5).tolist() == pytest.approx([100.0, 100.0])


def test_few_pauses_say_nothing() -> None:
    few = Pauses().fit([paused(2.0)] * (PAUSES_MIN - 1))
    assert few.widened(TIGHT, [True, True]) is TIGHT


def test_runs_of_one_season_are_no_pause() -> None:
    steady = [cohort((0, 100.0), (30, 200.0), (60, 50.0))] * 20
    assert Pauses().fit(steady).widened(TIGHT, [True, True]) is TIGHT


def test_a_pause_begins_with_the_newest_run() -> None:
    ran = cohort((0, 100.0), (10, 100.0))
    assert has_paused(ran, 10 * DAY_NS + PAUSE_NS)
    assert not has_paused(ran, 10 * DAY_NS + PAUSE_NS - 1)
    assert not has_paused(ran, None)
    assert len(TIGHT.levels) == len(LEVELS)
