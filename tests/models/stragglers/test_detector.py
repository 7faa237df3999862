import time
from dataclasses import replace

import numpy as np
import pytest
from tests.models.stragglers.made_up_steps import USUAL, Late, chosen, step_rows

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.stragglers.detector import WINDOW, Event, StragglerDetector

TEN_SECONDS = 10_000_000_000


def detected(ranks: int, steps: int, *late: Late, **more: int) -> list[Event]:
    return StragglerDetector(ranks).observe(step_rows(ranks, steps, *late, **more))


@pytest.mark.parametrize("ranks", [2, 3, 8, 64])
@pytest.mark.parametrize(("share", "phase"), [(0.15, "compute"), (0.3, "input"), (2.0, "checkpoint")])
def test_the_late_rank_is_named_with_its_phase_within_ten_seconds(ranks: int, share: float, phase: str) -> None:
    [event] = detected(ranks, 300, Late(1, share * USUAL, phase, first=100))
    assert (event.begins, event.rank, event.phase) == (True, 1, phase)
    assert event.since_step == pytest.approx(100, abs=4)  # what it lagged by noise just before counts in
    assert event.reported_ns - event.since_ns < TEN_SECONDS
    assert event.step > event.since_step or share > 1


@pytest.mark.thorough
@pytest.mark.parametrize("ranks", [2, 4, 256])
@pytest.mark.parametrize("seed", range(3))
def test_noise_names_nobody(ranks: int, seed: int) -> None:
    assert detected(ranks, 1000, seed=seed) == []  # seeded; 256 000 lags


def test_it_is_told_when_it_ends() -> None:
    begun, ended = detected(4, 400, Late(2, 0.5 * USUAL, first=100, end=200))
    assert (begun.begins, ended.begins, ended.rank) == (True, False, 2)
    assert 200 <= ended.step < 215
    detector = StragglerDetector(4)
    detector.observe(step_rows(4, 150, Late(2, 0.5 * USUAL, first=100)))
    assert [straggler.rank for straggler in detector.stragglers] == [2]


def test_one_long_pause_is_told_at_once() -> None:
    begun, ended = detected(4, 200, Late(3, 6 * USUAL, first=120, end=121))
    assert (begun.rank, begun.step, begun.begins) == (3, 120, True)
    assert ended.step < 140


def test_rare_small_checkpoints_of_one_rank_are_no_straggler() -> None:
    rows = step_rows(4, 400, *(Late(0, 0.5 * USUAL, "checkpoint", step, step + 1) for step in range(20, 400, 20)))
    assert StragglerDetector(4).observe(rows) == []


def test_a_long_collective_with_all_there_is_the_fabrics() -> None:
    [event] = detected(8, 300, slow_fabric_from=150)
    assert (event.rank, event.phase) == (None, "fabric")
    assert event.since_step == pytest.approx(150, abs=3)
    assert event.lag_ratio == pytest.approx(0.27, abs=0.05)  # 0.3 of compute, over steps of 1.1


def test_who_is_slow_from_the_beginning_is_named() -> None:
    [event] = detected(4, 100, Late(0, 0.3 * USUAL))
    assert (event.rank, event.since_step < 10) == (0, True)


def test_stages_are_compared_among_themselves() -> None:
    last_stage = [Late(rank, 0.5 * USUAL) for rank in (4, 5, 6, 7)]
    rows = step_rows(8, 200, *last_stage, Late(1, 0.3 * USUAL, first=100))
    apart = StragglerDetector(8, groups=[0, 0, 0, 0, 1, 1, 1, 1]).observe(rows)
    assert [event.rank for event in apart] == [1]


def test_a_usual_lag_is_none() -> None:
    rows = step_rows(4, 200, Late(0, 0.3 * USUAL))
    assert StragglerDetector(4, usual_lags=np.array([0.3, 0, 0, 0])).observe(rows) == []


def test_the_order_of_rows_and_how_many_come_at_once_do_not_matter() -> None:
    rows = step_rows(4, 300, Late(1, 0.3 * USUAL, first=100))
    at_once = StragglerDetector(4).observe(rows)
    detector, random = StragglerDetector(4), np.random.default_rng(0)
    in_parts = []
    for first in range(0, 1200, 40):  # ten steps at a time, shuffled
        in_parts += detector.observe(chosen(rows, first + random.permutation(40)))
    backwards = StragglerDetector(4).observe(chosen(rows, np.arange(1200)[::-1]))
    assert at_once == in_parts == backwards


def test_a_silent_rank_is_told_and_the_others_are_still_judged() -> None:
    rows = step_rows(4, 300, Late(1, 0.3 * USUAL, first=150))
    there = np.flatnonzero((rows.rank != 3) | (rows.step < 50))
    detector = StragglerDetector(4)
    [event] = detector.observe(chosen(rows, there))
    assert (event.rank, detector.silent) == (1, (3,))


def test_rows_that_come_too_late_are_counted_and_left() -> None:
    rows = step_rows(2, 300)
    detector = StragglerDetector(2)
    detector.observe(rows)
    assert detector.observe(chosen(rows, np.arange(10))) == []
    assert (detector.late_rows, detector.judged) == (10, 300)


def test_a_rank_without_peers_is_never_late() -> None:
    assert detected(1, 200, Late(0, 5 * USUAL, first=100)) == []


def test_a_hole_in_the_steps_is_stepped_over() -> None:
    rows = step_rows(4, 500, Late(1, 0.3 * USUAL, first=400))
    there = np.flatnonzero((rows.step < 100) | (rows.step > 100 + 2 * WINDOW))
    [event] = StragglerDetector(4).observe(chosen(rows, there))
    assert (event.rank, event.since_step) == (1, pytest.approx(400, abs=4))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("rank", -1, "rank -1 to 1: expected 0 to 1"),
        ("rank", 2, "rank 0 to 2: expected 0 to 1"),
        ("step", -1, "expected steps from 0 on"),
        ("comm", np.nan, "finite seconds"),
        ("phases", np.inf, "finite seconds"),
    ],
)
def test_rows_that_cannot_be_are_refused_whole(name: str, value: float, message: str) -> None:
    rows = step_rows(2, 20)
    values = getattr(rows, name).copy()
    values[5] = value
    detector = StragglerDetector(2)
    with pytest.raises(InvalidInputError, match=message):
        detector.observe(replace(rows, **{name: values}))
    assert (detector.judged, detector.next_step) == (0, 0)


def test_arrays_that_do_not_fit_are_refused() -> None:
    rows = step_rows(2, 20)
    with pytest.raises(InvalidInputError, match="expected as many"):
        StragglerDetector(2).observe(replace(rows, comm=rows.comm[:-1]))
    with pytest.raises(InvalidInputError, match="ranks 0: expected 1 or more"):
        StragglerDetector(0)
    with pytest.raises(InvalidInputError, match="a group and usual lag for each or none"):
        StragglerDetector(3, groups=[0, 1])


def test_a_thousand_ranks_take_a_small_part_of_a_core() -> None:
    rows = step_rows(1000, 50)
    detector = StragglerDetector(1000)
    began = time.process_time()
    detector.observe(rows)
    assert time.process_time() - began < 1.0  # five seconds of steps, measured 0.03 s
