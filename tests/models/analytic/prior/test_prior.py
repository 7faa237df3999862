from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.analytic.machine.constants import Constants
from crosswind.models.analytic.prior.case import SpreadNetwork, UnknownProgram, case_of, plan_of
from crosswind.models.analytic.prior.prior import AnalyticPrior, cases_of
from crosswind.models.surrogate.surrogate import LEVELS
from crosswind.models.surrogate.xgboost_quantile import XgboostQuantileSurrogate

TRUE = replace(
    Constants(),
    compute_efficiency=0.62,
    memory_efficiency=0.4,
    kernel_launch_seconds=1.5e-4,
    inside_efficiency=0.8,
    between_efficiency=0.45,
    between_latency_ratio=2.0,
    transfer_efficiency=0.2,
    overlap_ratio=0.7,
    step_overhead_seconds=3e-3,
)


def gpt_runs(ranks: list[int], count: int, seed: int = 0) -> pd.DataFrame:
    """Transformers of several sizes on A100s, spread in all the ways that fit so many ranks."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(count):
        total = int(rng.choice(ranks))
        tensor = int(rng.choice([degree for degree in (1, 2, 4, 8) if degree <= total]))
        pipeline = int(rng.choice([degree for degree in (1, 2, 4, 8) if degree <= total // tensor]))
        rows.append(
            {
                "hidden": int(rng.choice([1024, 2048, 4096])),
                "layers": int(rng.choice([16, 24, 32])),
                "heads": 16,
                "sequence": 1024,
                "micro_batch": int(rng.choice([1, 2, 4])),
                "micro_batches": int(rng.choice([1, 4, 16])),
                "tensor_parallel": tensor,
                "pipeline_parallel": pipeline,
                "ranks": total,
                "ranks_per_node": 4,
                "accelerator": "A100-SXM4-80GB",
            }
        )
    return pd.DataFrame(rows)


def true_seconds(X: pd.DataFrame, noise: float = 0.0, seed: int = 0) -> Floats:
    exact = np.array([case.seconds(TRUE) for case in cases_of(X)])
    return np.asarray(exact * np.exp(noise * np.random.default_rng(seed).standard_normal(len(X))), np.float64)


@pytest.mark.thorough
def test_from_eight_ranks_it_foretells_a_thousand() -> None:
    few, many = gpt_runs([1, 2, 4, 8], 120), gpt_runs([256, 512, 1024], 60, seed=1)
    model = AnalyticPrior().fit(few, true_seconds(few, noise=0.03))
    truth = true_seconds(many)
    errors = np.abs(model.seconds(many) / truth - 1)
    # Two nodes of 4 show the network already, with 3 % noise; a hundredfold scale must not make more than 10 % of it.
    assert np.median(errors) < 0.03
    assert np.mean(errors) < 0.10
    prediction = model.predict(many)
    assert np.mean((prediction.at(0.05) <= truth) & (truth <= prediction.at(0.95))) >= 0.8


def test_trees_alone_do_not() -> None:
    few, many = gpt_runs([1, 2, 4, 8], 120), gpt_runs([256, 512, 1024], 60, seed=1)
    numbers = [name for name in few.columns if name != "accelerator"]
    trees = XgboostQuantileSurrogate().fit(few[numbers], true_seconds(few, noise=0.03))
    assert np.mean(np.abs(trees.predict(many[numbers]).at(0.5) / true_seconds(many) - 1)) > 0.10


def test_without_runs_the_priors_answer() -> None:
    X = gpt_runs([1, 8], 5)
    priors = [case.seconds(Constants()) for case in cases_of(X)]
    assert AnalyticPrior().seconds(X) == pytest.approx(priors)
    assert AnalyticPrior().fit(X[:0], np.empty(0)).seconds(X) == pytest.approx(priors)


def test_bands_get_narrower_with_runs_and_stand_at_the_agreed_levels() -> None:
    X = gpt_runs([1, 2, 4, 8], 60)
    before = AnalyticPrior().predict(X)
    after = AnalyticPrior().fit(X, true_seconds(X, noise=0.03)).predict(X)
    assert before.levels == after.levels == LEVELS
    assert np.all(after.at(0.95) / after.at(0.05) < before.at(0.95) / before.at(0.05))


@pytest.mark.thorough
def test_bands_hold_new_runs_as_often_as_they_say() -> None:
    X, later = gpt_runs([1, 2, 4, 8], 150), gpt_runs([1, 2, 4, 8], 400, seed=5)
    y = true_seconds(later, noise=0.05, seed=3)
    prediction = AnalyticPrior().fit(X, true_seconds(X, noise=0.05)).predict(later)
    # 400 runs at 0.9 have a standard error of 0.015; the spread is estimated from 150 runs, 6 % either way.
    assert 0.84 <= np.mean((prediction.at(0.05) <= y) & (y <= prediction.at(0.95))) <= 0.96


def test_unknown_columns_are_ignored_and_no_rows_give_no_times() -> None:
    X = gpt_runs([8], 3)
    assert AnalyticPrior().seconds(X.assign(mood="fine")) == pytest.approx(AnalyticPrior().seconds(X))
    assert AnalyticPrior().seconds(X[:0]).shape == (0,)
    assert AnalyticPrior().predict(X[:0]).values.shape == (0, len(LEVELS))


def test_each_row_takes_the_formula_for_which_it_has_columns() -> None:
    X = pd.DataFrame(
        {
            "hidden": [1024, None, None],
            "layers": [12, None, None],
            "parameters": [None, 25.6e6, None],
            "flops_per_sample": [None, 12.3e9, None],
            "ranks": [8, 8, 8],
            "global_batch": [64, 256, 256],
        }
    )
    transformer, network, unknown = cases_of(X)
    assert isinstance(transformer, SpreadNetwork)
    assert isinstance(network, SpreadNetwork)
    assert transformer.workload.head_parameters > 0
    assert network.workload.parameters == pytest.approx(25.6e6)
    assert network.workload.flops == pytest.approx(12.3e9)
    assert unknown == UnknownProgram(8, 256)


def test_programs_of_which_only_scale_is_known_are_learned_too() -> None:
    ranks = np.array([1.0, 2, 4, 8])
    X, y = pd.DataFrame({"ranks": ranks}), 40 * (1 / ranks + 0.1)
    foretold = AnalyticPrior().fit(X, y).seconds(pd.DataFrame({"ranks": [64.0]}))
    # The truth is 4.6; the prior's reduction term, which four exact runs cannot rule out, may add some.
    assert foretold[0] == pytest.approx(4.6, rel=0.25)


def test_the_mesh_follows_from_what_is_told() -> None:
    plan = plan_of({"ranks": 16, "tensor_parallel": 2, "pipeline_parallel": 2, "global_batch": 64, "micro_batch": 4})
    assert (plan.data, plan.micro_batches) == (4, 4)
    assert plan_of({"data_parallel": 4, "global_batch": 64}).micro_batch == 16
    assert plan_of({"data_parallel": 4, "global_batch": 64, "micro_batches": 8}).micro_batch == 2
    assert plan_of({"data_parallel": 4, "global_batch": 10}).micro_batch == 3  # the fullest rank's


def test_what_a_device_does_not_publish_is_taken_from_an_unknown_one() -> None:
    described = {"hidden": 1024, "layers": 12, "accelerator": "no such thing"}
    assert np.isfinite(case_of(described).seconds(Constants()))


def test_known_links_count() -> None:
    described = {"hidden": 1024, "layers": 12, "tensor_parallel": 8, "accelerator": "A100"}
    slow, fast = (
        case_of({**described, "inside_bytes_per_second": speed}).seconds(Constants()) for speed in (1e9, 1e11)
    )
    assert slow > 2 * fast


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"data_parallel": 3}, "row 0: data 3 x tensor 1 x pipeline 1 = 3, expected ranks = 8"),
        ({"micro_batch": 0, "global_batch": 8}, "row 0: micro_batch is 0, expected a whole number of 1 or more"),
        ({"global_batch": 0}, "row 0: micro_batch is 0"),
        ({"tensor_parallel": 0}, "row 0: tensor_parallel is 0"),
        ({"micro_batch": 1.5}, "row 0: micro_batch is 1.5, expected a whole number"),
        ({"hidden": "wide"}, "row 0: hidden is 'wide', expected a number"),
        ({"recompute": "sometimes"}, "row 0: recompute is 'sometimes', expected true or false"),
        ({"schedule": "chimera"}, "row 0: schedule is 'chimera'"),
        ({"strategy": "magic"}, "strategy is 'magic'"),
        ({"global_batch": float("inf")}, "row 0: global_batch is inf"),
    ],
)
def test_rows_that_nobody_can_run_are_refused_by_place_and_column(changed: dict[str, object], message: str) -> None:
    row = {"hidden": 1024, "layers": 12, "ranks": 8, **changed}
    with pytest.raises(InvalidInputError, match=message):
        AnalyticPrior().seconds(pd.DataFrame([row]))


def test_times_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"y\[1\] is 0.0"):
        AnalyticPrior().fit(gpt_runs([8], 2), np.array([1.0, 0.0]))
