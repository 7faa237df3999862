"""Blame of neighbours, in scenes where it is known who does something."""

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from tests.models.interference.scenes import Scene, scene

from crosswind.data.schema.answers.effects import Neighbour, NeighbourKind, NeighbourScope
from crosswind.models.association.outcomes import Outcomes
from crosswind.models.interference.exposure import Exposures, enough
from crosswind.models.interference.interference import exposures_of, ranking
from crosswind.models.interference.suspects import Ranked


def ranked(made: Scene) -> Ranked:
    return ranking(made.compared, enough(exposures_of(made.compared, made.present)))


def blamed(made: Scene) -> list[str]:
    return [suspect.candidate.name for suspect in ranked(made).suspects if suspect.is_blamed]


@pytest.mark.thorough
def test_users_who_do_nothing_are_not_blamed_in_spite_of_drift() -> None:
    """In one of twenty scenes somebody may be; of 12, four or more would be that only once in 500 times."""
    assert sum(bool(blamed(scene(seed, users=100))) for seed in range(12)) <= 3


@pytest.mark.thorough
def test_an_aggressor_beside_a_fifth_of_the_runs_is_found() -> None:
    """Ten per cent of delay among five of noise: of 10 scenes, 8 or more."""
    assert sum("u-0" in blamed(scene(seed, users=100, effect=0.1)) for seed in range(100, 110)) >= 8


def test_the_effect_has_its_size_and_interval() -> None:
    first = ranked(scene(7, users=50, effect=0.2)).suspects[0]
    assert first.candidate == Neighbour(NeighbourKind.USER, NeighbourScope.NODE, "u-0")
    assert first.slowdown_low_ratio < np.exp(0.2) < first.slowdown_high_ratio
    assert first.q < 0.01  # the draws tell no smaller one
    assert first.stability > 0.95
    assert 0.9 < first.mean_share <= 1.0


def test_one_who_is_always_with_the_aggressor_rides_along() -> None:
    made = scene(8, users=30, effect=0.2)
    with_it = made.present[made.present["user"] == "u-0"].assign(user="u-shadow")
    present = pd.concat([made.present, with_it], ignore_index=True)
    by_name = {suspect.candidate.name: suspect for suspect in ranked(Scene(made.compared, present)).suspects}
    pair = [by_name["u-0"], by_name["u-shadow"]]
    assert all(suspect.q < 0.05 for suspect in pair)
    assert sorted(suspect.is_blamed for suspect in pair) == [False, True]
    [rides] = [suspect for suspect in pair if suspect.rides_with]
    assert rides.rides_with in [suspect.candidate for suspect in pair]


def test_one_who_makes_runs_faster_is_not_blamed() -> None:
    suspect = ranked(scene(9, users=30, effect=-0.2)).suspects[0]
    assert (suspect.candidate.name, suspect.q < 0.05, suspect.rho < 0, suspect.is_blamed) == ("u-0", True, True, False)


def test_who_came_with_the_drift_alone_cannot_be_told_from_it() -> None:
    made = scene(10, users=2)
    there = np.repeat([0.0, 1.0, 0.0, 1.0, 0.0] * 2, 10)
    user = Neighbour(NeighbourKind.USER, NeighbourScope.NODE, "u-block")
    answer = ranking(made.compared, Exposures((user,), scipy.sparse.csc_matrix(there[:, None])))
    assert (answer.suspects, answer.inseparable) == ((), 1)


def test_the_same_question_has_the_same_answer() -> None:
    made = scene(0, users=20)
    assert ranked(made) == ranked(made)


def test_a_user_who_was_there_all_the_time_is_no_candidate() -> None:
    made = scene(12, users=2)
    always = made.present.iloc[:1].assign(begin_ns=0, end_ns=2**62, user="u-always")
    nodes = sorted({node for run in made.compared.runs for node in run.nodes})
    present = pd.concat([always.assign(node=node) for node in nodes], ignore_index=True)
    met = exposures_of(made.compared, present)
    assert (len(met.candidates), len(enough(met).candidates)) == (1, 0)


@pytest.mark.thorough
def test_a_hundred_thousand_runs_are_ranked_in_seconds() -> None:
    """300 users; the bound is six times what one core takes."""
    random = np.random.default_rng(11)
    count, users = 100_000, 300
    one = scene(11, users=2).compared.runs[0]
    runs = tuple(replace(one, run_id=str(number), started_ns=number * 10**9) for number in range(count))
    shares = scipy.sparse.random(count, users, density=0.02, format="csc", random_state=random)
    excess = random.normal(0, 0.1, count) + 0.05 * (shares[:, [7]].toarray()[:, 0] > 0)
    compared = Outcomes("s", None, runs, excess, np.arange(count) % 50, count)
    names = tuple(Neighbour(NeighbourKind.USER, NeighbourScope.NODE, f"u-{number}") for number in range(users))
    before = time.monotonic()
    answer = ranking(compared, Exposures(names, shares))
    assert time.monotonic() - before < 60
    assert [suspect.candidate.name for suspect in answer.suspects if suspect.is_blamed] == ["u-7"]
    assert 1.04 < answer.suspects[0].slowdown_ratio < 1.065
