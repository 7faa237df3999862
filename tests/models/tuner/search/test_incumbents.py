"""The best configuration, how sure it is, and when to measure one again."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.schema.trial import Trial, TrialState
from crosswind.models.tuner.search.gaussian_process_tuner import GaussianProcessTuner
from crosswind.models.tuner.search.incumbents import Beliefs, next_replicate
from crosswind.models.tuner.search.random_tuner import RandomTuner
from crosswind.models.tuner.search.repeats import Repeats
from crosswind.models.tuner.search.replicating_tuner import ReplicatingTuner
from crosswind.models.tuner.space.space import Space

SPACE = Space.from_json(
    {
        "batch": {"kind": "ordinal", "values": [1, 2, 4, 8, 16, 32]},
        "workers": {"kind": "int", "low": 0, "high": 3},
    }
)
EVERYTHING = SPACE.configurations()
POINTS = SPACE.coordinates(EVERYTHING)
KEYS = [SPACE.key(configuration) for configuration in EVERYTHING]


def two_near_optima(seed: int) -> dict[str, float]:
    """The true objective of every configuration: two valleys, 2 % apart in depth."""
    a, b = POINTS[np.random.default_rng(seed).permutation(len(POINTS))[:2]]
    depth = np.minimum(((POINTS - a) ** 2).sum(axis=1), 0.02 + ((POINTS - b) ** 2).sum(axis=1))
    return dict(zip(KEYS, (1 + depth).tolist(), strict=True))


def search(noise: float, seed: int, measurements: int, share: float = 0.3) -> tuple[ReplicatingTuner, list[Trial]]:
    """Measures with this relative noise, looking around at random."""
    truth, rng = two_near_optima(seed), np.random.default_rng([seed, 1])
    tuner = ReplicatingTuner(SPACE, seed, RandomTuner(SPACE, seed), share=share)
    trials: list[Trial] = []
    while len(trials) < measurements:
        [chosen] = tuner.suggest(1)
        measured = truth[SPACE.key(chosen)] * float(np.exp(noise * rng.standard_normal()))
        trials.append(Trial(chosen, TrialState.DONE, measured, f"{len(trials)}"))
        tuner.observe(trials[-1:])
    return tuner, trials


def repeated(trials: list[Trial]) -> int:
    return len(trials) - len({SPACE.key(trial.configuration) for trial in trials})


@cache
def beliefs(noise: float = 0.1, counts: tuple[int, ...] = (1,) * 12) -> Beliefs:
    """Of the first configurations, measured as often as `counts` says."""
    truth, rng = two_near_optima(3), np.random.default_rng(0)
    rows = [EVERYTHING[2 * index] for index, count in enumerate(counts) for _ in range(count)]
    values = [truth[SPACE.key(configuration)] * float(np.exp(noise * rng.standard_normal())) for configuration in rows]
    return Beliefs.of(Repeats.of(SPACE, rows, values), seed=0)


@pytest.mark.thorough
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    covered = []
    for seed in range(200):
        truth, rng = two_near_optima(seed), np.random.default_rng([seed, 1])
        rows = [EVERYTHING[index] for index in np.random.default_rng([seed, 2]).permutation(len(EVERYTHING))[:14]]
        order = sorted(rows, key=lambda configuration: truth[SPACE.key(configuration)])
        rows += [*order[:2], *order[:2]]  # the two best, twice more
        values = [
            truth[SPACE.key(configuration)] * float(np.exp(0.1 * rng.standard_normal())) for configuration in rows
        ]
        answer = Beliefs.of(Repeats.of(SPACE, rows, values), seed).answer(0.9)
        covered.append(answer.low <= truth[SPACE.key(answer.configuration)] <= answer.high)
    assert 0.8 <= np.mean(covered) <= 0.98


@pytest.mark.thorough
def test_intervals_hold_the_truth_after_a_search_with_repeats_too() -> None:
    covered = []
    for seed in range(20):
        tuner, _ = search(0.1, seed, 14)
        answer = tuner.answer(0.9)
        covered.append(answer.low <= two_near_optima(seed)[SPACE.key(answer.configuration)] <= answer.high)
    assert np.mean(covered) >= 0.75  # of 20 with 90 % each, 14 or fewer come about once in 100


@pytest.mark.thorough
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
@pytest.mark.parametrize("noise", [0.05, 0.3])
def test_repeats_stay_within_their_share(noise: float, share: float) -> None:
    _, trials = search(noise, 0, 20, share)
    assert all(repeated(trials[:count]) <= share * count for count in range(1, 21))


@pytest.mark.thorough
def test_noise_is_met_with_repeats() -> None:
    assert sum(repeated(search(0.2, seed, 16)[1]) for seed in range(3)) >= 3


@pytest.mark.thorough
def test_without_noise_one_repeat_is_enough_to_know() -> None:
    # Where few measurements leave it open whether there is noise, one repeat shows that there is none.
    assert all(repeated(search(0.0, seed, 18)[1]) <= 1 for seed in range(4))


def test_chances_of_being_best_sum_to_one_and_favour_the_best_mean() -> None:
    belief = beliefs()
    assert belief.chances.sum() == pytest.approx(1)
    assert belief.answer().chance_best == belief.chances.max()


def test_more_repeats_make_the_answer_surer() -> None:
    once, often = beliefs().answer(), beliefs(counts=(8,) * 12).answer()
    assert np.log(often.high / often.low) < 0.6 * np.log(once.high / once.low)
    assert often.chance_best > once.chance_best
    assert often.repeats == 8
    assert often.noise == pytest.approx(0.1, rel=0.3)  # 84 degrees of freedom


def test_a_wider_level_has_a_wider_interval() -> None:
    narrow, wide = beliefs().answer(0.5), beliefs().answer(0.95)
    assert wide.low < narrow.low < narrow.objective < narrow.high < wide.high


def test_objectives_may_be_negative() -> None:
    repeats = Repeats.of(SPACE, EVERYTHING[:8], [-3.0, -2.0, 1.0, 0.0, 2.0, -1.0, 4.0, 2.0])
    answer = Beliefs.of(repeats, 0).answer()
    assert answer.configuration == EVERYTHING[0]
    assert answer.low < -2 < answer.high or answer.low < -3 < answer.high


def test_close_rivals_are_worth_more_repeats_than_losers() -> None:
    belief = beliefs()
    gains = belief.gains()
    assert set(np.flatnonzero(gains)) <= set(belief.incumbents())
    assert len(belief.incumbents()) <= 5
    assert gains[np.argmin(belief.chances)] == 0


def rivals() -> Beliefs:
    """Two configurations far apart are 1 % from each other and ahead of all; measurements scatter by 20 %."""
    best = {0: 1.0, 23: 1.01}
    rows = [configuration for configuration in EVERYTHING for _ in range(2)]
    values = [best.get(i, 1.5) * factor for i in range(len(EVERYTHING)) for factor in (0.87, 1.15)]
    return Beliefs.of(Repeats.of(SPACE, rows, values), seed=0)


def test_a_repeat_gives_way_to_a_new_configuration_that_promises_more() -> None:
    belief = rivals()
    best = float(belief.gains().max())
    assert best > belief.gain_min
    assert next_replicate(belief, exploring=0.5 * best, share=0.6) in (EVERYTHING[0], EVERYTHING[23])
    assert next_replicate(belief, exploring=2 * best, share=0.6) is None


def test_a_pending_configuration_is_not_repeated() -> None:
    belief = rivals()
    first = next_replicate(belief, exploring=0.0, share=0.6)
    assert first is not None
    second = next_replicate(belief, exploring=0.0, pending=frozenset([SPACE.key(first)]), share=0.6)
    assert second in (EVERYTHING[0], EVERYTHING[23])
    assert second != first


def test_few_configurations_are_not_repeated() -> None:
    assert next_replicate(beliefs(counts=(1,) * 4), exploring=1e-9, share=1.0) is None


def test_where_a_lower_value_is_expected_measuring_is_worth_more() -> None:
    belief = beliefs()
    gains, means = belief.gain_of_new(POINTS), belief.process.predict(POINTS)[0]
    assert np.all(gains > 0)
    assert gains[np.argmin(means)] > gains[np.argmax(means)]


def test_of_several_suggestions_one_is_a_repeat_at_most() -> None:
    tuner, trials = search(0.2, 1, 12)
    measured = {SPACE.key(trial.configuration) for trial in trials}
    suggestions = tuner.suggest(4)
    assert len(suggestions) == len({SPACE.key(configuration) for configuration in suggestions}) == 4
    assert sum(SPACE.key(configuration) in measured for configuration in suggestions) <= 1


def test_a_used_up_space_is_still_measured_again_where_that_tells_more() -> None:
    space = Space.from_json({"workers": {"kind": "int", "low": 0, "high": 5}})
    tuner = ReplicatingTuner(space, 0, GaussianProcessTuner(space, 0))
    values = [1.0, 1.3, 0.9, 1.3, 0.9, 1.2]
    trials = [
        Trial(configuration, TrialState.DONE, y)
        for configuration, y in zip(space.configurations(), values, strict=True)
    ]
    tuner.observe([replace(trial, trial_id=f"{index}") for index, trial in enumerate(trials)])
    [repeat] = tuner.suggest(3)
    assert repeat in ({"workers": 2}, {"workers": 4})


def test_there_is_no_answer_before_the_first_trial() -> None:
    tuner = ReplicatingTuner(SPACE, 0, RandomTuner(SPACE, 0))
    with pytest.raises(NotFoundError, match="no trial is complete"):
        tuner.answer()


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, float("nan")])
def test_an_impossible_level_is_refused(level: float) -> None:
    with pytest.raises(InvalidInputError, match=f"level is {level}, expected a number between 0 and 1"):
        beliefs().answer(level)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_an_impossible_share_is_refused(share: float) -> None:
    with pytest.raises(InvalidInputError, match=f"share is {share}, expected a number from 0 to 1"):
        next_replicate(beliefs(), exploring=0.0, share=share)
