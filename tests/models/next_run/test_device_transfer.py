"""Devices where a workload has hardly run: which questions other devices answer, and when that is learned again."""

import math

import numpy as np
import pytest

from crosswind.data.schema.question import Question
from crosswind.models.next_run.cohort_store import CohortStore, EndedRun
from crosswind.models.next_run.device_transfer import NO_LIMIT_WATTS, DeviceRuns, Law, device_runs
from crosswind.models.next_run.device_transfers import DeviceTransfers
from crosswind.models.transfer.calibrated_transfer import LIMIT

SPEEDS = {"a": 1.0, "b": 2.0}
BATCHES = (8, 16, 32, 64)
LAW = Law(("batch",), None)


def asked(system: str, batch: object, **settings: object) -> Question:
    return Question("bert", system, {"batch": batch, "optimizer": "adam", **settings})  # type: ignore[dict-item]


def store(*here: int, watts: float = math.nan, **settings: object) -> CohortStore:
    """Runs of four batches on two systems, and of these batches on a third."""
    cohorts = CohortStore()
    rows = [(system, batch, speed) for system, speed in SPEEDS.items() for batch in BATCHES]
    for place, (system, batch, speed) in enumerate([*rows, *(("new", batch, 4.0) for batch in here)]):
        run = EndedRun(f"r{place}", place, (1000 / batch + 10) / speed, watts, "recorded" if watts > 0 else "")
        cohorts.add(asked(system, batch, **settings), run)
    return cohorts


def learned(cohorts: CohortStore) -> DeviceRuns | None:
    return device_runs(cohorts.of_workload("bert"), asked("new", 8), LAW, 0)


def test_a_law_is_of_the_numbers_that_vary_and_of_a_limit_whose_effect_on_power_is_known() -> None:
    assert Law.of(store(8, depth=24).of_workload("bert")) == LAW
    for watts, law in ((200.0, Law(("batch",), "power_limit")), (math.nan, Law(("batch", "power_limit"), None))):
        cohorts = store(8, watts=watts, power_limit=250)
        cohorts.add(asked("a", 8, power_limit=100), EndedRun("slow", 99, 300.0, watts, "recorded"))
        assert Law.of(cohorts.of_workload("bert")) == law


def test_a_question_is_a_row_of_the_law_unless_a_number_is_missing_or_a_text() -> None:
    row = LAW.row(asked("new", 24))
    assert row is not None
    assert (row["batch"], row[LIMIT]) == (24.0, NO_LIMIT_WATTS)
    assert row["job"] == (LAW.row(asked("a", 8)) or {})["job"]
    assert LAW.row(asked("new", "many")) is None
    assert LAW.row(asked("new", -8)) is None
    limited = Law(("batch",), "power_limit")
    assert limited.row(asked("new", 8)) is None
    assert limited.row(asked("new", 8, power_limit="250 W")) is None


def test_one_run_scales_the_times_of_other_devices() -> None:
    runs = learned(store(16))
    assert runs is not None
    answer = runs.answer([asked("new", 8), asked("new", 64)])
    assert answer is not None
    assert answer.quantiles.seconds.at(0.5) == pytest.approx([135 / 4, 25.625 / 4], rel=0.05)
    assert answer.own_runs == (1, 1)


def test_other_jobs_and_numbers_far_beyond_those_of_other_devices_are_left_to_other_models() -> None:
    runs = learned(store(16))
    assert runs is not None
    strange = asked("new", 16, optimizer="sgd")
    answer = runs.answer([asked("new", 2), asked("new", 1), asked("new", 256), asked("new", 300), strange])
    assert answer is not None
    assert answer.asked.tolist() == [True, False, True, False, False]
    assert runs.answer([strange]) is None


def test_without_a_run_here_or_with_few_elsewhere_nothing_is_transferred() -> None:
    assert learned(store()) is None
    few = CohortStore()
    for place, (system, batch) in enumerate([("a", 8), ("a", 16), ("b", 8), ("new", 8)]):
        few.add(asked(system, batch), EndedRun(f"r{place}", place, 10.0))
    assert learned(few) is None


def test_a_device_is_learned_again_when_its_configurations_have_doubled() -> None:
    cohorts = store(16, 32)
    transfers = DeviceTransfers().learn(cohorts)

    def median() -> float:
        answer = transfers.answer(cohorts, [asked("new", 64)])
        assert answer is not None
        return float(answer.quantiles.seconds.at(0.5)[0])

    before = median()
    for place, batch in enumerate((8, 63)):
        question = asked("new", batch)
        transfers.forget(question)
        cohorts.add(question, EndedRun(f"late{place}", 100 + place, 100.0))  # far slower than any before
        assert np.isclose(median(), before) == (place == 0)
