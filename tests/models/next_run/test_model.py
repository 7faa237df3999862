from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.models.next_run.made_up_runs import rows, scaled

from crosswind.data.schema.answers.predictions import PredictionBasis, QuestionKind, RunPrediction
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.question import Question
from crosswind.models.next_run.model import NextRunModel
from crosswind.models.next_run.quantiles import distribution
from crosswind.models.registry.archive import read_model, write_model
from crosswind.models.spread import PREDICTIVE

NETWORK: dict[str, Any] = {"hidden": 1024, "layers": 24, "global_batch": 64, "accelerator": "A100"}


@pytest.fixture(scope="module")
def model() -> NextRunModel:
    """Of 48 runs of 16 cohorts on one system: seconds are batch / ranks^0.8."""
    return NextRunModel("run_seconds").fit(scaled())


def asked(batch: Any = 8, ranks: int = 2, system: str = "lab", **others: Any) -> Question:
    return Question("gpt", system, {"batch": batch, **others}, ranks)


def seconds(answer: RunPrediction) -> list[float]:
    return [quantile.seconds for quantile in answer.quantiles]


def width(answer: RunPrediction) -> float:
    """Of the 90 % interval, as a ratio."""
    return float(distribution(answer).at(0.95)[0] / distribution(answer).at(0.05)[0])


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_one_cohort_alone_is_answered_from_its_runs_however_few(runs: int) -> None:
    table = rows(*(("gpt", "lab", {"batch": 8}, 2, 10.0 + number) for number in range(runs)))
    answer = NextRunModel("run_seconds").fit(table).answer(asked())
    assert (answer.basis, answer.cohort_runs, answer.runs, answer.distance) == (PredictionBasis.COHORT, runs, runs, 0.0)
    assert seconds(answer) == sorted(seconds(answer))
    assert 9 < distribution(answer).at(0.5)[0] < 13
    assert [neighbour.run_id for neighbour in answer.evidence] == [f"r{number}" for number in range(runs)][::-1]


def test_one_run_alone_stands_for_other_scales_with_a_cautious_band() -> None:
    model = NextRunModel("run_seconds").fit(rows(("gpt", "lab", {"batch": 8}, 2, 10.0)))
    answer = model.answer(asked(ranks=4))
    assert (answer.basis, answer.cohort_runs, answer.runs) == (PredictionBasis.WORKLOAD, 0, 1)
    assert distribution(answer).at(0.5)[0] == pytest.approx(10.0)
    assert width(answer) > 3  # one in ten is off by more than a factor of two


def test_without_any_run_only_formulas_answer() -> None:
    empty = NextRunModel("step_p50_seconds").fit(rows())
    answer = empty.answer(Question("gpt", "lab", NETWORK, 8))
    assert (answer.basis, answer.evidence, answer.distance, answer.is_outside) == (
        PredictionBasis.ANALYTIC,
        (),
        None,
        True,
    )
    assert answer.memory is not None
    with pytest.raises(InvalidInputError, match=r"'gpt': no earlier run has step_p50_seconds; for an estimate"):
        empty.answer(asked())


def test_a_whole_run_by_formulas_takes_its_steps_times_as_long_as_one() -> None:
    question = Question("gpt", "lab", {**NETWORK, "steps": 100}, 8)
    step = NextRunModel("step_p50_seconds").answer(question)
    run = NextRunModel("run_seconds").answer(question)
    assert seconds(run) == pytest.approx([100 * quantile for quantile in seconds(step)])


@pytest.mark.parametrize("steps", [None, 0, True, "many"])
def test_a_whole_run_by_formulas_needs_its_steps(steps: object) -> None:
    configuration = NETWORK if steps is None else {**NETWORK, "steps": steps}
    with pytest.raises(InvalidInputError, match="of a whole run its steps"):
        NextRunModel("run_seconds").answer(Question("gpt", "lab", configuration, 8))


def test_formulas_tell_nothing_of_jobs() -> None:
    with pytest.raises(InvalidInputError, match="no earlier run has job_seconds"):
        NextRunModel("job_seconds").answer(Question("gpt", "lab", {**NETWORK, "steps": 100}, 8))


def test_a_cohort_that_never_ran_is_told_by_its_workload(model: NextRunModel) -> None:
    answer = model.answer(asked(24, 4))
    assert (answer.basis, answer.is_outside, answer.warnings) == (PredictionBasis.WORKLOAD, False, ())
    # 24 / 4^0.8 lies between configurations that ran; the law is smooth, so a fifth is far more than 2 % of noise.
    assert distribution(answer).at(0.5)[0] == pytest.approx(24 / 4**0.8, rel=0.2)


def test_far_away_is_outside_and_wider_than_near(model: NextRunModel) -> None:
    near, far = model.answer(asked(24, 4)), model.answer(asked(24, 4096))
    assert far.is_outside
    assert far.distance is not None
    assert near.distance is not None
    assert far.distance > 1 >= near.distance
    assert width(far) > width(near)
    assert "world_size is 4096, earlier runs had 1 to 8" in far.warnings


def test_a_parameter_that_nobody_had_is_no_distance_of_zero(model: NextRunModel) -> None:
    answer = model.answer(asked(8, 2, zero_stage=3))
    assert (answer.basis, answer.warnings) == (PredictionBasis.WORKLOAD, ("zero_stage is 3, no earlier run had it",))
    assert answer.distance is not None
    assert answer.distance > 0


def test_a_system_that_never_ran_is_outside_and_its_band_is_as_wide_as_that(model: NextRunModel) -> None:
    here, there = model.answer(asked(24, 4)), model.answer(asked(24, 4, "other"))
    assert (there.basis, there.is_outside, here.is_outside) == (PredictionBasis.TRANSFER, True, False)
    # Nothing is known of how systems differ: a factor of e up or down is usual, and nine in ten lie within e^1.645.
    assert width(there) > np.exp(2 * 1.5)
    assert width(here) < width(there) / 5
    assert model.batch([asked(24, 4, "other")]).is_outside == (True,)


def test_an_accelerator_that_never_ran_is_outside() -> None:
    kinds = [(batch, ranks, name) for batch in (8, 32, 64) for ranks in (1, 2, 4) for name in ("A100", "V100")]
    ran = [
        ("gpt", "lab", {"batch": batch, "accelerator": name}, ranks, batch / ranks * (2 if name == "V100" else 1))
        for batch, ranks, name in kinds
    ]
    model = NextRunModel("run_seconds").fit(rows(*ran))
    usual, new = (model.answer(asked(16, 2, accelerator=name)) for name in ("A100", "H100"))
    assert (usual.is_outside, new.is_outside) == (False, True)
    assert new.worth.kind is QuestionKind.SYSTEM
    assert width(new) > 3 * width(usual)


def test_accuracy_is_that_of_the_kind_of_question(model: NextRunModel) -> None:
    questions = {
        QuestionKind.REPEAT: asked(),
        QuestionKind.CONFIGURATION: asked(24, 4),
        QuestionKind.SCALE: asked(8, 64),
        QuestionKind.SYSTEM: asked(8, 2, "other"),
    }
    assert {kind: model.answer(question).worth.kind for kind, question in questions.items()} == {
        kind: kind for kind in questions
    }
    held = model.answer(questions[QuestionKind.CONFIGURATION]).worth
    assert (held.runs, held.is_held_out, held.skill) == (16, True, None)
    assert held.median_error is not None
    assert held.median_error < 0.3
    assert model.answer(questions[QuestionKind.SYSTEM]).worth.runs == 0  # there was only one


def test_runs_of_the_workload_are_the_evidence_before_nearer_ones_of_another() -> None:
    own = [("gpt", "lab", {"batch": 64}, ranks, 64.0 / ranks) for ranks in (16, 32)]
    others = [("bert", "lab", {"batch": 8}, ranks, 8.0 / ranks) for ranks in (1, 2, 4, 8)]
    answer = NextRunModel("run_seconds").fit(rows(*others, *own)).answer(asked(8, 1))
    assert [run.workload for run in answer.evidence] == ["gpt", "gpt", "bert", "bert", "bert"]
    assert answer.distance == answer.evidence[0].distance


def test_a_second_system_is_told_by_its_own_level() -> None:
    """With `slow` three times slower at every batch that ran there, a scale that did not is slow too."""
    kinds = [(batch, ranks) for batch in (8, 32) for ranks in (1, 2, 4)]
    there = [("gpt", "slow", {"batch": batch}, ranks, 3 * batch / ranks**0.8) for batch, ranks in kinds]
    table = scaled(2)[["workload", "system", "configuration", "world_size", "seconds"]]
    here = [tuple(row) for row in table.to_numpy()]
    model = NextRunModel("run_seconds").fit(rows(*here, *there, *there))
    answer = model.answer(asked(32, 8, "slow"))
    assert answer.basis is PredictionBasis.WORKLOAD
    # Between twice and four and a half times what `lab` takes: the system's own runs count more than the other's.
    assert 2 < distribution(answer).at(0.5)[0] / (32 / 8**0.8) < 4.5


def test_degrees_that_cannot_be_are_refused_unless_they_ran(model: NextRunModel) -> None:
    odd: dict[str, Any] = {"batch": 8, "dp": 2, "tp": 2, "pp": 1}  # with experts or the like 8 ranks may do this
    with pytest.raises(InvalidInputError, match="make 4 ranks, expected 8"):
        model.answer(Question("gpt", "lab", odd, 8))
    ran = NextRunModel("run_seconds").fit(rows(("gpt", "lab", odd, 8, 10.0)))
    assert ran.answer(Question("gpt", "lab", odd, 8)).basis is PredictionBasis.COHORT


def test_mixed_values_of_one_parameter_are_learned_from_and_asked_about() -> None:
    kinds: Sequence[Any] = (8, "auto", True, 16.0, "64", [1, 2], None, float("nan"))
    table = rows(*(("gpt", "lab", {"batch": kind}, ranks, 10.0) for kind in kinds for ranks in (1, 2)))
    model = NextRunModel("run_seconds").fit(table)
    for value in (8, 8.0, "auto", "other", False, 12):
        assert distribution(model.answer(asked(value, 4))).at(0.5)[0] == pytest.approx(10.0, rel=0.5)


def test_a_text_where_numbers_ran_counts_as_missing(model: NextRunModel) -> None:
    answer = model.answer(asked("auto"))
    assert answer.basis is PredictionBasis.WORKLOAD
    assert any(warning.startswith("batch is auto, earlier runs had") for warning in answer.warnings)
    assert seconds(model.answer(asked("24"))) == pytest.approx(seconds(model.answer(asked(24))))


def test_many_at_once_are_answered_as_one_by_one(model: NextRunModel) -> None:
    questions = [asked(8, 2), asked(24, 4), asked(8, 2, "other"), asked(24, 4), asked("auto", 512), asked(8.0, 2)]
    questions.append(Question("gpt", "lab", {"batch": 24}, 4, 4))  # on four nodes
    batch = model.batch(questions)
    for row, question in enumerate(questions):
        one = model.answer(question)
        assert batch.seconds[row] == pytest.approx(np.array(seconds(one)), rel=1e-5)  # trees have 32 bits
        assert (batch.basis[row], batch.is_outside[row]) == (one.basis, one.is_outside)


def test_formulas_answer_many_at_once_too() -> None:
    model = NextRunModel("step_p50_seconds")
    questions = [Question("gpt", "lab", {**NETWORK, "global_batch": size}, 8) for size in (64, 128)]
    one_by_one = np.array([seconds(model.answer(question)) for question in questions])
    assert model.batch(questions).seconds == pytest.approx(one_by_one)


def test_no_question_gets_no_answer(model: NextRunModel) -> None:
    assert model.batch([]).seconds.shape == (0, 8)


def test_the_number_of_nodes_is_no_other_cohort(model: NextRunModel) -> None:
    assert model.answer(Question("gpt", "lab", {"batch": 8}, 2, 2)).basis is PredictionBasis.COHORT


def test_new_runs_count_once_and_leave_the_old_model_as_it_was(model: NextRunModel) -> None:
    before, content = model.answer(asked()), write_model(model)
    news = scaled(5)  # 32 runs more, and those that it knows
    later = model.with_runs(news)
    assert (later.answer(asked()).cohort_runs, later.answer(asked()).runs) == (5, 80)
    assert later.with_runs(news) is later
    assert model.answer(asked()) == before
    assert write_model(model) == content


def test_a_new_cohort_is_heard_of(model: NextRunModel) -> None:
    first = scaled().assign(run_id=[f"n{number}" for number in range(48)], workload="bert")
    later = model.with_runs(first[:1])
    assert (later.has_run("bert"), model.has_run("bert")) == (True, False)
    assert later.answer(Question("bert", "lab", {"batch": 8}, 1)).evidence[0].run_id == "n0"


def test_runs_that_are_no_longer_kept_are_not_news() -> None:
    table = rows(*(("gpt", "lab", {"batch": 8}, 2, float(number + 1)) for number in range(300)))
    model = NextRunModel("run_seconds").fit(table)
    assert model.with_runs(table) is model


def test_two_systems_may_count_their_jobs_alike() -> None:
    here = rows(("gpt", "lab", {}, 1, 10.0))
    there = rows(("gpt", "other", {}, 1, 20.0))
    model = NextRunModel("job_seconds").fit(here).with_runs(there)
    assert distribution(model.answer(Question("gpt", "other", {}, 1))).at(0.5)[0] == pytest.approx(20.0, rel=0.2)


def test_cohorts_that_ran_long_ago_are_still_answered_from_their_own_runs() -> None:
    old: list[tuple[Any, ...]] = [("old", "lab", {}, 1, 50.0 + number % 3) for number in range(10)]
    new: list[tuple[Any, ...]] = [("new", "lab", {}, 1, 1.0 + 0.01 * (number % 7)) for number in range(2050)]
    answer = NextRunModel("run_seconds").fit(rows(*old, *new)).answer(Question("old", "lab", {}, 1))
    assert answer.cohort_runs == 10
    assert distribution(answer).at(0.5)[0] == pytest.approx(51, abs=1.5)
    assert width(answer) < 1.5


def test_conditions_change_the_answer_only_where_they_are_given() -> None:
    """Half of the runs began beside others that used many cores, and took half as long again."""
    busy = np.arange(80) % 4 < 2
    table = rows(*(("gpt", "lab", {"batch": 8}, 2, 15.0 if is_busy else 10.0) for is_busy in busy))
    noise = np.random.default_rng(0).lognormal(0, 0.01, 80)
    table["seconds"] *= noise
    conditions = pd.DataFrame({name: np.zeros(80) for name in PREDICTIVE}).assign(
        **{PREDICTIVE[0]: np.where(busy, 8.0, 0.0)}
    )
    model = NextRunModel("run_seconds").fit(table, conditions)
    calm, loaded = conditions[2:3], conditions[:1]
    assert distribution(model.answer(asked(), calm)).at(0.5)[0] < 11
    assert distribution(model.answer(asked(), loaded)).at(0.5)[0] > 14
    unknown = pd.DataFrame({name: [np.nan] for name in PREDICTIVE})
    assert seconds(model.answer(asked())) == pytest.approx(seconds(model.answer(asked(), unknown)))
    both = model.batch([asked(), asked()], pd.concat([calm, loaded]))
    assert both.seconds[0] == pytest.approx(np.array(seconds(model.answer(asked(), calm))))
    assert both.seconds[1] == pytest.approx(np.array(seconds(model.answer(asked(), loaded))))


def test_a_saved_model_answers_the_same_bit_for_bit(model: NextRunModel) -> None:
    read = read_model(write_model(model))
    questions = [asked(8, 2), asked(24, 4), asked(8, 2, "other"), asked("auto", 512)]
    for question in questions:
        assert read.answer(question) == model.answer(question)
    assert np.array_equal(read.batch(questions).seconds, model.batch(questions).seconds)
    assert write_model(read) == write_model(model)


def test_the_same_runs_teach_the_same(model: NextRunModel) -> None:
    assert NextRunModel("run_seconds").fit(scaled()).answer(asked(24, 4)) == model.answer(asked(24, 4))


@pytest.mark.thorough
def test_a_path_in_every_configuration_costs_no_column_each() -> None:
    table = rows(*(("gpt", "lab", {"batch": 8, "out": f"/runs/{number}"}, 2, 10.0) for number in range(300)))
    model = NextRunModel("run_seconds").fit(table)
    answer = model.answer(asked(8, 2, out="/runs/new"))
    assert (answer.basis, answer.is_outside) == (PredictionBasis.WORKLOAD, False)
    assert distribution(answer).at(0.5)[0] == pytest.approx(10.0, rel=0.05)
    assert len(write_model(model)) < 3_000_000
