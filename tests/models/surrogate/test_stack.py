import numpy as np
import pandas as pd
import pytest
from tests.models.surrogate.scaling_runs import scaling_runs

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.models.surrogate import (
    LogLinearSurrogate,
    NearestCohortSurrogate,
    NotFittedError,
    Stack,
    Surrogate,
    XgboostQuantileSurrogate,
)
from crosswind.models.surrogate.typical_time import typical_time
from crosswind.models.surrogate.validation import LeaveGroupOut, SmallToLarge, TimeOrdered


def with_site(count: int) -> tuple[pd.DataFrame, Floats]:
    X, seconds = scaling_runs(count)
    return X.assign(site=np.random.default_rng(1).choice(["a", "b", "c"], count)), seconds


def test_weights_are_shares_of_one_for_every_question() -> None:
    members: tuple[Surrogate, ...] = (LogLinearSurrogate(), XgboostQuantileSurrogate())
    stack = Stack(members, (SmallToLarge("ranks"), TimeOrdered())).fit(*scaling_runs(120))
    for blend in stack.blends:
        assert np.all(blend.weights >= 0)
        assert blend.weights.sum() == pytest.approx(1)


def test_for_a_larger_scale_the_law_is_trusted_and_trees_are_not() -> None:
    members: tuple[Surrogate, ...] = (XgboostQuantileSurrogate(), LogLinearSurrogate())
    stack = Stack(members, (SmallToLarge("ranks"), TimeOrdered())).fit(*scaling_runs(200))
    assert stack.blends[0].weights.tolist() == [0, 1]
    asked = pd.DataFrame({"ranks": [256.0], "device": ["fast"]})
    assert stack.predict(asked).at(0.5)[0] == pytest.approx(1000 / 256, rel=0.2)


def test_a_member_that_only_knows_noise_gets_no_weight() -> None:
    class Noise(LogLinearSurrogate):
        def fit(self, X: pd.DataFrame, y: Floats) -> "Noise":
            super().fit(X, np.exp(np.random.default_rng(0).standard_normal(len(y))))
            return self

    stack = Stack((Noise(), LogLinearSurrogate()), (TimeOrdered(),)).fit(*scaling_runs(120))
    assert stack.blends[0].weights.tolist() == [0, 1]


def test_where_members_agree_the_first_has_the_weight() -> None:
    stack = Stack((LogLinearSurrogate(), LogLinearSurrogate()), (TimeOrdered(),)).fit(*scaling_runs(60))
    assert stack.blends[0].weights.tolist() == [1, 0]


def test_a_split_that_tests_too_little_trusts_whom_the_next_one_trusts() -> None:
    X, seconds = scaling_runs(60)
    one_scale = X.assign(ranks=8.0)
    members: tuple[Surrogate, ...] = (XgboostQuantileSurrogate(), LogLinearSurrogate())
    stack = Stack(members, (SmallToLarge("ranks"), TimeOrdered())).fit(one_scale, seconds)
    assert stack.blends[0].weights.tolist() == stack.blends[1].weights.tolist()
    assert stack.blends[0].held_out is None


def test_a_row_is_as_uncertain_as_all_that_is_new_about_it() -> None:
    X, seconds = scaling_runs(120)
    splits = (SmallToLarge("ranks"), LeaveGroupOut("device", deviation=1.0), TimeOrdered())
    stack = Stack((LogLinearSurrogate(),), splits).fit(X, seconds)
    asked = pd.DataFrame({"ranks": [8.0, 256.0, 8.0, 256.0], "device": ["fast", "fast", "new", "new"]})
    band = stack.predict(asked)
    usual, larger, unseen, both = np.log(band.at(0.95) / band.at(0.05))
    assert usual < larger < unseen
    assert both == pytest.approx(unseen)


def test_a_device_of_which_only_one_ran_is_guessed_within_the_deviation() -> None:
    X, seconds = scaling_runs(60)
    splits = (LeaveGroupOut("device", deviation=1.0), TimeOrdered())
    stack = Stack((LogLinearSurrogate(),), splits).fit(X.assign(device="fast"), seconds)
    band = stack.predict(pd.DataFrame({"ranks": [8.0], "device": ["new"]}))
    assert np.log(band.at(0.95) / band.at(0.05)) == pytest.approx([2 * 1.645], abs=0.1)


def test_held_out_rows_are_scored_with_what_the_others_taught() -> None:
    X, seconds = scaling_runs(200)
    stack = Stack((LogLinearSurrogate(),), (LeaveGroupOut("device"), TimeOrdered())).fit(X, seconds)
    by_device, later = (blend.held_out for blend in stack.blends)
    assert by_device is not None
    assert later is not None
    assert (by_device.rows, later.rows) == (200, 150)  # the first of four parts is only learned from
    assert by_device.median_error > 10 * later.median_error  # a device is twice as slow as the other
    # A share of 150 rows has a standard deviation of 0.025 about 0.9; four of them.
    assert later.coverage_90 == pytest.approx(0.9, abs=0.1)


def test_too_few_answers_share_the_weight_equally() -> None:
    stack = Stack((LogLinearSurrogate(), NearestCohortSurrogate()), (TimeOrdered(),)).fit(*scaling_runs(6))
    assert stack.blends[0].weights.tolist() == [0.5, 0.5]


def test_no_member_sees_a_hidden_column() -> None:
    X, seconds = with_site(60)
    stack = Stack((LogLinearSurrogate(),), (LeaveGroupOut("site"),), hidden=("site",)).fit(X, seconds)
    asked = X.iloc[:2].assign(site=["a", "somewhere else"], ranks=4.0, device="fast")
    first, second = stack.predict(asked).at(0.5)
    assert first == second


@pytest.mark.thorough
def test_nine_of_ten_runs_of_a_site_never_seen_lie_in_the_band() -> None:
    X, seconds = with_site(300)
    new, new_seconds = scaling_runs(100, noise=0.02)
    stack = typical_time(0, scale="ranks", device="device", site="site").fit(X, seconds)
    prediction = stack.predict(new.assign(site="new"))
    inside = (prediction.at(0.05) <= new_seconds) & (new_seconds <= prediction.at(0.95))
    # A share of 100 runs has a standard deviation of 0.03 about 0.9; three of them. Of three sites the band is wider.
    assert inside.mean() >= 0.81


def test_the_recipe_answers_for_a_device_and_a_scale_never_seen() -> None:
    X, seconds = with_site(120)
    stack = typical_time(0, scale="ranks", device="device", site="site").fit(X, seconds)
    asked = pd.DataFrame({"ranks": [8.0, 256.0], "device": ["new", "slow"], "site": ["a", "a"]})
    unseen, larger = stack.predict(asked).at(0.5)
    assert 1000 / 8 < unseen < 2000 / 8  # between the devices that are known
    assert larger == pytest.approx(2000 / 256, rel=0.25)


def test_a_stack_of_nothing_is_refused_and_one_not_fitted_has_no_blends() -> None:
    with pytest.raises(InvalidInputError, match="0 members and 1 splits"):
        Stack((), (TimeOrdered(),)).fit(*scaling_runs(10))
    with pytest.raises(NotFittedError, match="blends came before fit"):
        _ = Stack((LogLinearSurrogate(),), (TimeOrdered(),)).blends
