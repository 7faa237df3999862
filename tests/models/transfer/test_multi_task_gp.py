"""The process over several tasks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.transfer.coordinates import Coordinates
from crosswind.models.transfer.multi_task_gp import MultiTaskGp
from crosswind.models.transfer.task_kernel import TaskKernel

MakeCase = Callable[..., Any]


def test_the_slopes_of_the_covariance_are_those_of_finite_differences() -> None:
    rng = np.random.default_rng(0)
    kernel = TaskKernel.first(2, 3, 0.7).at(0.5 * rng.standard_normal(2 + 2 + 3))
    points, tasks = rng.standard_normal((9, 2)), np.repeat([0.0, 1.0, 2.0], 3)
    squares = (points.T[:, :, None] - points.T[:, None, :]) ** 2
    for place, slope in enumerate(kernel.with_slopes(squares, tasks)[1]):
        step = np.zeros(len(kernel.theta))
        step[place] = 1e-6
        above, below = (kernel.at(kernel.theta + sign * step).with_slopes(squares, tasks)[0] for sign in (1, -1))
        assert slope == pytest.approx((above - below) / 2e-6, abs=1e-8)


def test_what_is_told_of_a_run_left_out_is_what_a_process_without_it_tells(make_case: MakeCase) -> None:
    case = make_case(runs=6)
    whole = MultiTaskGp("system").fit(case.source, case.source_seconds, case.target, case.target_seconds)
    posterior, kernel = whole._posterior, whole._kernel
    assert posterior is not None
    assert kernel is not None
    kept = np.arange(len(posterior.values)) != len(posterior.values) - 1
    covariance = np.linalg.inv(posterior.inverse)
    weights = np.linalg.solve(covariance[np.ix_(kept, kept)], posterior.values[kept])
    expected = whole._centre + whole._spread * float(covariance[-1, kept] @ weights)
    assert np.log(whole.held_out()[-1]) == pytest.approx(expected, abs=1e-6)


def test_without_sources_it_learns_from_the_target_alone(make_case: MakeCase) -> None:
    case = make_case(runs=40)
    model = MultiTaskGp().fit(case.target.iloc[:0], np.empty(0), case.target, case.target_seconds)
    errors = np.abs(np.log(model.predict(case.asked).at(0.5) / case.answer))
    assert np.median(errors) < 0.1  # smooth and without noise: 40 points leave a few percent


def test_its_90_percent_interval_holds_about_90_percent(make_case: MakeCase) -> None:
    inside = []
    for seed in range(5):
        case = make_case(runs=5, seed=seed)
        model = MultiTaskGp("system").fit(case.source, case.source_seconds, case.target, case.target_seconds)
        prediction = model.predict(case.asked)
        inside.append(np.mean((prediction.at(0.05) <= case.answer) & (case.answer <= prediction.at(0.95))))
    assert np.mean(inside) > 0.8  # 5 fits err together: their mean has a deviation of some 5 %


def test_no_row_at_all_is_refused() -> None:
    empty = pd.DataFrame({"nodes": []})
    with pytest.raises(InvalidInputError, match="neither source nor target has a row"):
        MultiTaskGp().fit(empty, np.empty(0), empty, np.empty(0))


def test_distances_know_numbers_categories_missing_and_strangers() -> None:
    table = pd.DataFrame({"nodes": [1.0, 3.0], "precision": ["bf16", "fp32"]})
    coordinates = Coordinates.of(table)
    asked = pd.DataFrame({"nodes": [3.0, np.nan, 1.0], "precision": ["bf16", None, "fp8"]})
    squares = coordinates.square_distances(coordinates.points(asked), coordinates.points(table))
    assert squares[0].tolist() == [[4.0, 0.0], [1.0, 1.0], [0.0, 4.0]]  # 1 and 3 are two deviations apart
    assert squares[1].tolist() == [[0.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
