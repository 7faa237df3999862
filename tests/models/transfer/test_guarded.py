"""A source that hurts has no say, and no way that loses to a guard has."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from crosswind.models.surrogate.xgboost_quantile import XgboostQuantileSurrogate
from crosswind.models.transfer.guarded import GuardedTransfer
from crosswind.models.transfer.stacked_sources import TARGET, StackedSources

TREES = XgboostQuantileSurrogate(n_rounds=40, learning_rate=0.25)  # each model learns a copy of its own
MakeCase = Callable[..., Any]


def _guarded(make_case: MakeCase, *sources: str, seed: int = 0) -> GuardedTransfer:
    case = make_case(runs=10, sources=sources, seed=seed)
    model = GuardedTransfer(TREES, "system")
    return model.fit(case.source, case.source_seconds, case.target, case.target_seconds)


@pytest.mark.thorough
@pytest.mark.parametrize("hurting", ["reversed", "noise"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_source_that_hurts_beside_a_good_one_has_weight_0(make_case: MakeCase, hurting: str, seed: int) -> None:
    weights = _guarded(make_case, "alike", hurting, seed=seed).source_weights
    assert weights[hurting] == 0.0
    assert weights["alike"] > 0.5


@pytest.mark.parametrize("hurting", ["reversed", "noise"])
def test_with_hurting_sources_alone_the_target_answers_alone(make_case: MakeCase, hurting: str) -> None:
    model = _guarded(make_case, hurting)
    assert model.weights == {"target_only": 1.0}
    assert model.source_weights == {hurting: 0.0}


def test_a_reversed_source_has_weight_0_in_the_stack(make_case: MakeCase) -> None:
    case = make_case(runs=10, sources=("alike", "reversed"))
    stacked = StackedSources(TREES, "system")
    weights = stacked.fit(case.source, case.source_seconds, case.target, case.target_seconds).weights
    assert weights["reversed"] == 0.0
    assert weights["alike"] + weights[TARGET] == pytest.approx(1.0)


@pytest.mark.thorough
@pytest.mark.parametrize("runs", [3, 5, 10])
@pytest.mark.parametrize("seed", [0, 1])
def test_left_out_runs_are_told_no_worse_than_by_either_guard(make_case: MakeCase, runs: int, seed: int) -> None:
    case = make_case(runs=runs, sources=("alike", "noise"), seed=seed)
    model = GuardedTransfer(TREES, "system")
    model.fit(case.source, case.source_seconds, case.target, case.target_seconds)
    error = float(np.mean(np.abs(np.log(model.held_out() / case.target_seconds))))
    guards = [model.errors[name] for name in ("target_only", "anchored") if name in model.errors]
    assert error <= min(guards) + 1e-9


@pytest.mark.parametrize("runs", [0, 2])
def test_too_few_runs_to_check_leave_the_anchored_sources(make_case: MakeCase, runs: int) -> None:
    case = make_case(runs=runs)
    model = GuardedTransfer(TREES, "system")
    model.fit(case.source, case.source_seconds, case.target, case.target_seconds)
    assert model.weights == {"anchored": 1.0}
    assert model.errors == {}


def test_a_stack_without_a_source_is_the_stack_of_the_others(make_case: MakeCase) -> None:
    both, one = make_case(runs=6, sources=("alike", "noise")), make_case(runs=6)
    fewer = StackedSources(TREES, "system").fit(both.source, both.source_seconds, both.target, both.target_seconds)
    alone = StackedSources(TREES, "system").fit(one.source, one.source_seconds, one.target, one.target_seconds)
    assert np.array_equal(fewer.only(["alike"]).predict(one.asked).values, alone.predict(one.asked).values)
