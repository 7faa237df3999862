"""Formulas among the surrogates: of networks that the configuration describes."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from tests.models.next_run.made_up_runs import rows

from crosswind.data.schema.answers.predictions import PredictionBasis, QuestionKind
from crosswind.data.schema.question import Question
from crosswind.models.next_run.describe import described
from crosswind.models.next_run.formula_surrogate import FormulaSurrogate
from crosswind.models.next_run.formulas import step_seconds
from crosswind.models.next_run.model import NextRunModel
from crosswind.models.next_run.quantiles import distribution

NETWORK: Mapping[str, Any] = {"layers": 24, "sequence": 1024, "accelerator": "A100"}


def network(hidden: int, batch: int, ranks: int, **others: Any) -> Question:
    """Of data-parallel ranks."""
    return Question("gpt", "lab", {**NETWORK, "hidden": hidden, "global_batch": batch, **others}, ranks, 1)


def ran(question: Question, factor: float = 1.3) -> tuple[Any, ...]:
    """A run that takes so many times what formulas say."""
    return (
        question.workload,
        question.system,
        question.configuration,
        question.world_size,
        factor * step_seconds(question),
    )


SMALL = [network(hidden, batch, ranks) for hidden in (1024, 2048, 4096) for batch in (32, 64, 128) for ranks in (1, 2)]


def test_a_larger_scale_of_a_workload_that_ran_is_answered_by_formulas_calibrated_on_its_runs() -> None:
    model = NextRunModel("step_p50_seconds").fit(rows(*map(ran, SMALL)))
    question = network(2048, 64, 8)
    answer = model.answer(question)
    assert (answer.basis, answer.worth.kind) == (PredictionBasis.WORKLOAD, QuestionKind.SCALE)
    assert distribution(answer).at(0.5)[0] == pytest.approx(1.3 * step_seconds(question), rel=0.15)


def test_a_run_takes_its_steps_times_as_long() -> None:
    table = described([network(1024, batch, 1, steps=steps) for batch in (32, 64, 128) for steps in (10, 100)])
    seconds = np.array([step_seconds(question) for question in SMALL[:1]] * 6) * np.array([10, 100] * 3) * 2
    model = FormulaSurrogate(is_step=False).fit(table, seconds)
    longer = described([network(1024, 32, 1, steps=1000)])
    assert model.medians(longer)[0] == pytest.approx(100 * model.medians(table)[0], rel=0.1)


def test_rows_without_a_network_are_left_to_a_law() -> None:
    questions = [*SMALL, *(Question("other", "lab", {"batch": batch}, 2) for batch in (8, 16, 32, 64))]
    seconds = np.array([*(step_seconds(question) for question in SMALL), 8.0, 16.0, 32.0, 64.0])
    medians = FormulaSurrogate(is_step=True).fit(described(questions), seconds).medians(described(questions))
    assert medians[: len(SMALL)] == pytest.approx(seconds[: len(SMALL)], rel=0.1)
    assert np.isfinite(medians).all()


def test_rows_are_predicted_from_others_without_a_new_fit() -> None:
    table, seconds = described(SMALL), np.array([1.3 * step_seconds(question) for question in SMALL])
    model = FormulaSurrogate(is_step=True).fit(table, seconds)
    test = np.arange(len(SMALL)) % 3 == 0
    assert model.held_out(~test, test) == pytest.approx(seconds[test], rel=0.2)


def test_a_new_workload_without_nodes_is_answered_by_formulas_of_runs_with_them() -> None:
    on_nodes = rows(*map(ran, SMALL)).assign(node_count=1.0)
    model = NextRunModel("step_p50_seconds").fit(on_nodes)
    question = Question("llama", "lab", {**NETWORK, "hidden": 2048, "global_batch": 64, "recompute": True}, 4)
    answer = model.answer(question)
    assert (answer.basis, answer.worth.kind) == (PredictionBasis.ANALYTIC, QuestionKind.WORKLOAD)
    assert distribution(answer).at(0.5)[0] == pytest.approx(1.3 * step_seconds(question), rel=0.3)
