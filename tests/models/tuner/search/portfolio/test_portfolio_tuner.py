import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.trial import Configuration, Trial, TrialState
from crosswind.models.tuner.search.design import START
from crosswind.models.tuner.search.portfolio.tuner import PortfolioTuner
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.space.space import Space

GRID = Space.from_json({name: {"kind": "ordinal", "values": list(range(12))} for name in ("a", "b")})
ENDLESS = Space.from_json({name: {"kind": "float", "low": 0, "high": 11} for name in ("a", "b")})


def bowl(configuration: Configuration, at: float = 7.0) -> float:
    """Smallest, 1, at a = `at`, b = 3."""
    return 1 + (float(configuration["a"]) - at) ** 2 + (float(configuration["b"]) - 3) ** 2


def source(space: Space, *, at: float = 7.0, sign: int = 1, count: int = 60) -> Source:
    drawn = space.random(count, seed=5)
    return Source(f"at {at}", drawn, [bowl(configuration, at) ** sign for configuration in drawn], {"nodes": at})


def tune(tuner: PortfolioTuner, count: int) -> list[float]:
    objectives = []
    for _ in range(count):
        [configuration] = tuner.suggest(1)
        objectives.append(bowl(configuration))
        tuner.observe([Trial(configuration, TrialState.DONE, objectives[-1])])
    return objectives


def test_the_first_suggestion_is_the_best_row_of_a_source() -> None:
    prior = source(GRID)
    assert PortfolioTuner(GRID, 0, [prior]).suggest(1) == prior.best(1)


@pytest.mark.parametrize("space", [GRID, ENDLESS], ids=["listed", "endless"])
def test_a_source_that_lies_near_helps_at_once(space: Space) -> None:
    assert min(tune(PortfolioTuner(space, 0, [source(space, at=6.0)], features={"nodes": 7.0}), 8)) < 2.5


def test_the_source_that_is_described_like_the_target_counts_first_and_most() -> None:
    sources = [source(GRID, at=1.0), source(GRID, at=10.0), source(GRID, at=7.0)]
    tuner = PortfolioTuner(GRID, 0, sources, features={"nodes": 7.0})
    assert tuner.suggest(1) == sources[2].best(1)
    assert min(tune(PortfolioTuner(GRID, 0, sources, features={"nodes": 10.0}), 1)) > min(tune(tuner, 1))


def test_a_source_that_says_the_opposite_does_no_lasting_harm() -> None:
    assert min(tune(PortfolioTuner(GRID, 0, [source(GRID, sign=-1)]), 25)) == 1


def test_without_sources_the_bottom_of_a_grid_is_found() -> None:
    assert min(tune(PortfolioTuner(GRID, 0), 25)) == 1


def test_a_batch_holds_no_configuration_twice_and_nothing_pending() -> None:
    tuner = PortfolioTuner(GRID, 0, [source(GRID)])
    held = tuner.suggest(4)
    tuner.observe(
        [Trial(configuration, TrialState.LEASED, trial_id=str(place)) for place, configuration in enumerate(held)]
    )
    keys = [GRID.key(configuration) for configuration in [*held, *tuner.suggest(6)]]
    assert len(set(keys)) == len(keys) == 10


def test_a_row_that_failed_in_every_source_is_not_among_the_first() -> None:
    drawn = GRID.random(100, seed=1)
    failed = [None if int(str(configuration["a"])) > 5 else bowl(configuration) for configuration in drawn]
    suggested = PortfolioTuner(GRID, 0, [Source("old", drawn, failed)]).suggest(5)
    assert max(int(str(configuration["a"])) for configuration in suggested) <= 6


def test_pruned_trials_count_as_no_better_than_the_worst_measured() -> None:
    tuner = PortfolioTuner(GRID, 0)
    tune(tuner, 8)
    worse = [{"a": 0, "b": b} for b in range(8, 12)]
    tuner.observe(
        [Trial(configuration, TrialState.PRUNED, trial_id=str(place)) for place, configuration in enumerate(worse)]
    )
    assert all(
        int(str(configuration["a"])) > 0 or int(str(configuration["b"])) < 7 for configuration in tuner.suggest(3)
    )


def test_a_source_of_other_parameters_is_left_aside() -> None:
    foreign = Source("other", [{"x": value} for value in range(9)], list(np.arange(1.0, 10.0)))
    assert PortfolioTuner(GRID, 0, [foreign]).suggest(3) == PortfolioTuner(GRID, 0).suggest(3)


def test_a_request_for_no_suggestions_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="count is 0, expected at least 1"):
        PortfolioTuner(GRID, 0).suggest(0)


def test_the_first_suggestion_is_what_all_sources_agree_on() -> None:
    drawn = GRID.random(100, seed=1)

    def narrow(configuration: Configuration, at: float) -> float:
        return 1 + 3 * abs(float(configuration["a"]) - at) + abs(float(configuration["b"]) - 3)

    sources = [Source(f"at {at}", drawn, [narrow(row, at) for row in drawn]) for at in (2.0, 6.0, 10.0)]
    [first] = PortfolioTuner(GRID, 0, sources).suggest(1)
    assert abs(float(first["a"]) - 6) <= 2
    assert [first] != sources[0].best(1)


def test_the_first_suggestion_has_failed_in_no_source() -> None:
    drawn = GRID.random(100, seed=1)
    good = Source("good", drawn, [bowl(configuration) for configuration in drawn])
    [first] = PortfolioTuner(GRID, 0, [good]).suggest(1)
    for n_more in (0, 1, 3):  # that have not failed there
        failed = Source("failed", [*drawn[:4], first], [1.0, 1.0, 1.0, 1.0, None])
        assert PortfolioTuner(GRID, 0, [*[good] * (n_more + 1), failed]).suggest(1) != [first]


@pytest.mark.parametrize("space", [GRID, ENDLESS], ids=["listed", "endless"])
@pytest.mark.parametrize("in_batches", [False, True])
def test_one_of_the_first_five_is_of_the_searchs_own_design(space: Space, *, in_batches: bool) -> None:
    tuner, own = PortfolioTuner(space, 0, [source(space)]), PortfolioTuner(space, 0).suggest(START)
    chosen = tuner.suggest(5) if in_batches else []
    for _ in range(5 - len(chosen)):
        chosen += tuner.suggest(1)
        tuner.observe([Trial(chosen[-1], TrialState.DONE, bowl(chosen[-1]))])
    assert sum(configuration in own for configuration in chosen) == 1


def test_a_source_that_orders_the_trials_the_other_way_round_loses_its_weight_before_the_sixth() -> None:
    wrong = Source("wrong", (drawn := GRID.random(60, seed=5)), [1 / bowl(configuration) for configuration in drawn])
    tuner = PortfolioTuner(GRID, 0, [source(GRID), wrong])
    assert tuner.weights() == {"at 7.0": 0.5, "wrong": 0.5, "own": 0}
    tune(tuner, 5)
    assert tuner.weights()["wrong"] == 0
    assert tuner.weights()["at 7.0"] >= 0.5


def test_where_no_source_is_trusted_all_weight_is_the_searchs_own() -> None:
    tuner = PortfolioTuner(GRID, 0, [source(GRID, sign=-1)])
    tune(tuner, 4)
    assert tuner.weights() == {"at 7.0": 0, "own": 1}


def test_the_weights_of_sources_and_own_model_sum_to_1_and_follow_the_measurements() -> None:
    tuner = PortfolioTuner(GRID, 0, [source(GRID, at=6.0), source(GRID, at=1.0, sign=-1)], features={"nodes": 7.0})
    before = tuner.weights()
    assert list(before) == ["at 6.0", "at 1.0", "own"]
    assert before["own"] == 0
    tune(tuner, 10)
    after = tuner.weights()
    assert sum(after.values()) == pytest.approx(1)
    assert after["at 1.0"] < min(before["at 1.0"], 0.05)


def test_there_are_no_weights_without_sources() -> None:
    assert PortfolioTuner(GRID, 0).weights() == {}


def test_sources_of_one_name_are_weighed_together() -> None:
    assert PortfolioTuner(GRID, 0, [source(GRID), source(GRID)]).weights() == {"at 7.0": 1, "own": 0}
