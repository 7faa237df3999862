"""The distribution of a cohort's next run."""

import json
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats, Prediction
from crosswind.models.scores import coverage, pinball_loss
from crosswind.models.spread import CohortSpread
from crosswind.models.spread.few_runs import shrunken
from crosswind.models.spread.level import drifts, level_of, weighted_quantiles
from crosswind.models.spread.linear_quantiles import LinearQuantiles, Standard
from crosswind.models.spread.modes import Modes
from crosswind.models.surrogate import LEVELS, NotFittedError

MEDIAN = LEVELS.index(0.5)
NOTHING = pd.DataFrame(index=range(1))


def nothing(count: int) -> pd.DataFrame:
    return pd.DataFrame(index=range(count))


def history(
    count: int, *, seed: int = 0, effect: float = 0.0, noise: float = 0.1
) -> tuple[list[str], Floats, pd.DataFrame]:
    """Runs of three cohorts of 1, 10 and 100 s in turn; the last scatters three times as much, load adds `effect`."""
    rng = np.random.default_rng(seed)
    which = np.arange(count) % 3
    load = rng.integers(0, 2, count).astype(float)
    scale = np.array([1.0, 1.0, 3.0])[which]
    logs = np.log(10.0) * which + scale * (effect * load + noise * rng.standard_normal(count))
    return [f"c{number}" for number in which], np.exp(logs), pd.DataFrame({"load": load})


def fitted(count: int = 150, **how: float) -> CohortSpread:
    cohorts, seconds, conditions = history(count, **how)  # type: ignore[arg-type]
    return CohortSpread().fit(cohorts, seconds, conditions)


def test_without_conditions_quantiles_are_those_of_the_scattering_around_the_level() -> None:
    cohorts, seconds, _ = history(300)
    model = CohortSpread().fit(cohorts, seconds, nothing(300))
    assert not model.uses_conditions
    [small, large] = model.predict(["c1", "c2"], nothing(2)).values
    # 100 runs a cohort: a median is off by 1.25 x 0.1 / 10 = 0.013, an outer quantile as much again and the
    # scale by 7 % of it: 0.022 together, and three of these.
    assert np.log(small[[0, MEDIAN, 6]] / 10) == pytest.approx([-0.1645, 0, 0.1645], abs=0.07)
    assert np.log(large[[0, MEDIAN, 6]] / 100) == pytest.approx([-0.4935, 0, 0.4935], abs=0.21)


def test_a_condition_that_explains_the_time_moves_the_whole_distribution() -> None:
    model = fitted(150, effect=0.5)
    assert model.uses_conditions
    idle, busy = model.predict(["c0", "c0"], pd.DataFrame({"load": [0.0, 1.0]})).values
    # 50 runs a cohort: a median is off by 1.25 x 0.1 / 7 = 0.018 on either side, and the penalty takes a little.
    assert np.log(busy[MEDIAN] / idle[MEDIAN]) == pytest.approx(0.5, abs=0.08)
    assert idle[-2] < busy[1]


def test_conditions_that_tell_nothing_are_left_alone() -> None:
    cohorts, seconds, _ = history(150)
    noise = pd.DataFrame(np.random.default_rng(9).standard_normal((150, 8)), columns=list("abcdefgh"))
    model = CohortSpread().fit(cohorts, seconds, noise)
    plain = CohortSpread().fit(cohorts, seconds, nothing(150))
    assert not model.uses_conditions
    assert np.array_equal(model.predict(["c0"], noise[:1]).values, plain.predict(["c0"], NOTHING).values)


def test_an_unknown_condition_is_the_usual_one() -> None:
    model = fitted(150, effect=0.5)
    [unknown, idle, busy] = model.predict(["c0"] * 3, pd.DataFrame({"load": [np.nan, 0.0, 1.0]})).values
    assert idle[MEDIAN] < unknown[MEDIAN] < busy[MEDIAN]


@pytest.mark.thorough
def test_intervals_keep_their_promise_on_later_runs() -> None:
    covered, lost = [], []
    for seed in range(5):
        cohorts, seconds, conditions = history(300, seed=seed, effect=0.3)
        model = CohortSpread().fit(cohorts[:150], seconds[:150], conditions[:150])
        said = model.predict(cohorts[150:], conditions[150:])
        covered.append(coverage(said, seconds[150:], low=0.05, high=0.95))
        usual = np.log(
            CohortSpread().fit(cohorts[:150], seconds[:150], nothing(150)).predict(cohorts[150:], nothing(150)).values
        )
        lost.append(_loss(np.log(said.values), seconds[150:]) / _loss(usual, seconds[150:]))
    # 750 runs: a share of 0.9 has a standard error of 0.011, and so has what 150 rows calibrate (0.025 / sqrt 5).
    assert np.mean(covered) == pytest.approx(0.9, abs=0.04)
    # Without noise of the levels the load halves the loss: sd 0.1 against 0.18.
    assert np.mean(lost) < 0.75


def test_a_system_that_became_quicker_comes_back_into_the_interval() -> None:
    """By two standard deviations from the 151st run on; levels of all runs lag behind that for long."""
    covered: list[float] = []
    stayed: list[float] = []
    for seed in range(3):
        cohorts, seconds, _ = history(400, seed=seed)
        seconds *= np.where(np.arange(400) < 150, 1.0, np.exp(-0.2))
        follows, stays = (CohortSpread().fit(cohorts[:150], seconds[:150], nothing(150)) for _ in range(2))
        for place in range(150, 400):
            for model, coverages in ((follows, covered), (stays, stayed)):
                said = model.predict([cohorts[place]], NOTHING)
                coverages.append(coverage(said, seconds[[place]], low=0.05, high=0.95))
            follows.observe(cohorts[place], seconds[place], NOTHING)
            stays.observe_level(cohorts[place], seconds[place], NOTHING)
    # 750 runs: a share of 0.9 has a standard error of 0.011; the first fifty after the change are outside mostly.
    assert np.mean(covered) == pytest.approx(0.9, abs=0.08)
    assert np.mean(stayed) < np.mean(covered) - 0.05


@pytest.mark.thorough
def test_a_run_of_long_ago_moves_its_cohort_s_level_alone() -> None:
    observed, remembered = fitted(150), fitted(150)
    before = remembered.predict(["c1"], pd.DataFrame({"load": [0.0]})).values
    for model, count in ((observed, observed.observe), (remembered, remembered.observe_level)):
        count("c0", 50.0, pd.DataFrame({"load": [0.0]}))
        assert model.level_seconds(["c0"]) > fitted(150).level_seconds(["c0"])
    assert np.array_equal(remembered.predict(["c1"], pd.DataFrame({"load": [0.0]})).values, before)
    assert not np.array_equal(observed.predict(["c1"], pd.DataFrame({"load": [0.0]})).values, before)


def _loss(log_quantiles: Floats, seconds: Floats) -> float:
    return pinball_loss(Prediction(LEVELS, log_quantiles), np.log(seconds))


@pytest.mark.thorough
@pytest.mark.parametrize("runs", [0, 1, 2, 3])
def test_a_cohort_of_few_runs_is_told_by_what_few_runs_told_of_all_cohorts(runs: int) -> None:
    cohorts, seconds, conditions = history(150)
    names, times = [*cohorts, *(["new"] * runs)], np.append(seconds, np.full(runs, 7.0))
    rows = pd.concat([conditions, conditions[:runs]], ignore_index=True)
    model = CohortSpread().fit(names, times, rows)
    [said] = model.predict(["new"], pd.DataFrame({"load": [0.5]})).values
    [familiar] = model.predict(["c0"], pd.DataFrame({"load": [0.5]})).values
    assert said[6] / said[0] > familiar[6] / familiar[0]  # less is known, so more is possible
    if runs:
        assert said[0] < 7.0 < said[6]


def test_a_cohort_that_never_ran_lies_where_another_model_expects_it() -> None:
    cohorts, seconds, conditions = history(150)
    expected = np.where(np.array(cohorts) == "c2", 100.0, np.where(np.array(cohorts) == "c1", 10.0, 1.0))
    model = CohortSpread().fit(cohorts, seconds, conditions, expected=expected)
    load = pd.DataFrame({"load": [0.5]})
    [said] = model.predict(["new"], load, expected=np.array([42.0])).values
    [blind] = model.predict(["new"], load).values
    # What is expected of the others is right but for their noise, mostly 10 %, of which the median is known to 1 %.
    assert said[MEDIAN] == pytest.approx(42.0, rel=0.05)
    assert blind[MEDIAN] == pytest.approx(10.0, rel=0.1)  # in the middle of the others


def test_own_runs_outweigh_what_was_expected_as_they_grow_in_number() -> None:
    assert shrunken(np.nan, 0, 5.0) == 5.0
    assert shrunken(1.0, 2, 5.0) == 3.0
    assert shrunken(1.0, 3, np.nan) == 1.0


def test_a_run_that_ended_moves_the_level_of_its_cohort_alone() -> None:
    model = fitted(150, effect=0.5)
    before = model.level_seconds(["c0", "c1"])
    for _ in range(250):
        model.observe("c0", 2.0, pd.DataFrame({"load": [0.0]}))
    after = model.level_seconds(["c0", "c1"])
    # The level is the time under the usual load, half of which is there: so much more than 2 s without any.
    # The 50 runs before pull its lowest quantile down a little.
    assert after[0] == pytest.approx(2.0 * np.exp(0.25), rel=0.1)
    assert after[1] == before[1]
    model.observe("new", 3.0, pd.DataFrame({"load": [np.nan]}))
    assert model.level_seconds(["new"])[0] == pytest.approx(3.0)
    assert np.isnan(model.level_seconds(["never"])[0])


def test_a_cohort_of_many_runs_gets_corrections_of_its_own() -> None:
    rng = np.random.default_rng(8)
    skewed, plain = 0.1 * rng.exponential(size=220), 0.1 * rng.standard_normal(220)
    names = ["skewed", "plain"] * 220
    seconds = np.exp(np.column_stack([skewed, plain]).ravel())
    said = CohortSpread().fit(names, seconds, nothing(440)).predict(["skewed", "plain"], nothing(2))
    low = np.log(said.at(0.05) / said.at(0.5))
    # An exponential distribution begins 0.069 below its median, a normal one has 5 % below 0.164 under it; standard
    # errors are 0.007 and 0.018, and together they would both say something between.
    assert low == pytest.approx([-0.064, -0.164], abs=0.04)


def test_a_cohort_whose_runs_go_in_two_ways_is_told_as_a_mixture() -> None:
    rng = np.random.default_rng(3)
    slow = rng.permutation(np.arange(80) % 4 == 0)
    seconds = np.exp(np.where(slow, 1.0, 0.0) + 0.03 * rng.standard_normal(80))
    [said] = CohortSpread().fit(["c"] * 80, seconds, nothing(80)).predict(["c"], NOTHING).values
    at = dict(zip(LEVELS, said, strict=True))
    # A quarter of the runs is slow: 75 % lies between the ways, half is fast, 90 % slow; noise of 3 % around both.
    assert at[0.5] == pytest.approx(1.0, rel=0.05)
    assert at[0.9] == pytest.approx(np.e, rel=0.05)


def test_one_way_is_not_taken_for_two() -> None:
    rng = np.random.default_rng(4)
    assert all(Modes.of(rng.standard_normal(60)) is None for _ in range(20))
    tails = [Modes.of(rng.exponential(size=60)) for _ in range(20)]
    assert sum(modes is not None for modes in tails) <= 2  # 1 in 100 has a gap by chance: three of 20 is 1 in 1000
    assert Modes.of(np.array([0.0, 1.0] * 5)) is None  # too few
    both = Modes.of(np.concatenate([rng.normal(0, 0.1, 45), rng.normal(2, 0.1, 15)]))
    assert both is not None
    assert both.shares == pytest.approx([0.75, 0.25])
    assert both.means == pytest.approx([0.0, 2.0], abs=0.1)  # four standard errors of 0.1 / sqrt 15


def test_a_cohort_that_drifts_is_told_by_its_recent_runs() -> None:
    rng = np.random.default_rng(5)
    still = 0.05 * rng.standard_normal(40)
    assert not drifts(still)
    assert drifts(still + 0.05 * np.arange(40))
    stepped = np.exp(still + np.where(np.arange(40) < 25, 0.0, 1.0))
    [said] = CohortSpread().fit(["c"] * 40, stepped, nothing(40)).predict(["c"], NOTHING).values
    assert said[MEDIAN] > np.exp(0.7)


def test_the_level_lies_in_the_lower_half_and_equal_weights_change_nothing() -> None:
    values = np.array([0.0, 1.0, 2.0, 3.0, 100.0])
    assert level_of(values) == pytest.approx((1.0 + 1.6 + 2.0) / 3)
    assert level_of(np.array([4.0])) == 4.0
    assert weighted_quantiles(values, np.ones(5), LEVELS) == pytest.approx(np.quantile(values, LEVELS))


def test_conditions_of_any_size_are_compared_by_their_logarithm() -> None:
    table = pd.DataFrame({"bytes": [0.0, 1e3, 1e6, 1e9], "ratio": [0.0, 0.1, np.nan, 0.3], "same": 5.0})
    matrix = Standard.of(table).matrix(table)
    assert np.diff(matrix[1:, 0]) == pytest.approx([np.diff(matrix[1:, 0])[0]] * 2, rel=1e-3)
    assert matrix[2, 1] == 0.0
    assert (matrix[:, 2] == 0.0).all()
    far = Standard.of(table).matrix(pd.DataFrame({"bytes": [1e300], "ratio": [-99.0], "same": [5.0]}))
    assert far[0].tolist() == [pytest.approx(far[0, 0]), -4.0, 0.0]


def test_without_columns_linear_quantiles_are_the_targets_own() -> None:
    target = np.arange(101.0)
    model = LinearQuantiles.fit(np.empty((101, 0)), target)
    assert model.predict(np.empty((1, 0)))[0] == pytest.approx(100 * np.array(LEVELS))


def test_quantiles_never_cross_and_asking_again_says_the_same() -> None:
    rng = np.random.default_rng(6)
    model = fitted(60, effect=0.3)
    asked = pd.DataFrame({"load": 5 * rng.standard_normal(50)})
    cohorts = [f"c{number % 5}" for number in range(50)]
    said = model.predict(cohorts, asked)
    assert (np.diff(said.values, axis=1) >= 0).all()
    assert np.array_equal(said.values, model.predict(cohorts, asked).values)
    assert len(model.predict([], asked[:0]).values) == 0


def test_what_a_fitted_model_keeps_can_be_saved_without_pickle() -> None:
    model = fitted(60, effect=0.3)

    def plain(value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            return plain(vars(value))
        if isinstance(value, dict):
            return {str(key): plain(entry) for key, entry in value.items()}
        if isinstance(value, list | tuple):
            return [plain(entry) for entry in value]
        assert value is None or isinstance(value, bool | int | float | str | np.ndarray), type(value)
        return None

    assert json.dumps(plain(model))


def test_impossible_runs_are_refused_by_name() -> None:
    cohorts, seconds, conditions = history(12)
    with pytest.raises(InvalidInputError, match=r"seconds\[3\] is -1.0, expected a positive number"):
        CohortSpread().fit(cohorts, np.where(np.arange(12) == 3, -1.0, seconds), conditions)
    with pytest.raises(InvalidInputError, match="12 cohorts, seconds of shape"):
        CohortSpread().fit(cohorts, seconds[1:], conditions)
    with pytest.raises(InvalidInputError, match="condition load holds an infinite value"):
        CohortSpread().fit(cohorts, seconds, conditions.replace({0.0: np.inf}))
    with pytest.raises(InvalidInputError, match="expected numbers"):
        CohortSpread().fit(cohorts, seconds, conditions.astype(object).replace({0.0: "idle"}))
    with pytest.raises(InvalidInputError, match="no three compare"):
        CohortSpread().fit(["a"], np.array([1.0]), nothing(1))
    with pytest.raises(InvalidInputError, match="expected has shape"):
        CohortSpread().fit(cohorts, seconds, conditions, expected=seconds[1:])


def test_other_conditions_than_learned_from_are_refused() -> None:
    with pytest.raises(NotFittedError):
        CohortSpread().predict(["c0"], NOTHING)
    model = fitted(60)
    with pytest.raises(InvalidInputError, match="conditions are other, expected load as in fit"):
        model.predict(["c0"], pd.DataFrame({"other": [1.0]}))
    with pytest.raises(InvalidInputError, match="conditions have 1 rows, expected 2"):
        model.predict(["c0", "c1"], pd.DataFrame({"load": [1.0]}))
    with pytest.raises(InvalidInputError, match="expected 1 positive numbers"):
        model.predict(["c0"], pd.DataFrame({"load": [1.0]}), expected=np.array([-1.0]))
    alone = CohortSpread().fit(["a"] * 6, np.full(6, 2.0) + np.arange(6) / 10, nothing(6))
    with pytest.raises(InvalidInputError, match="cohort 'b' never ran and there is no other"):
        alone.predict(["b"], NOTHING)
