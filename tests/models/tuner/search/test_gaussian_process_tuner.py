import numpy as np
import pytest

from crosswind.data.samples import tuning_grid
from crosswind.data.schema.trial import Configuration, Trial, TrialState
from crosswind.models.tuner.search.gaussian_process_tuner import GaussianProcessTuner
from crosswind.models.tuner.search.random_tuner import RandomTuner
from crosswind.models.tuner.search.tuner import Tuner
from crosswind.models.tuner.space.space import Space

GRID = {
    "micro_batch": {"kind": "ordinal", "values": [2, 4, 8, 16]},
    "accumulation_steps": {"kind": "ordinal", "values": [1, 4]},
    "bucket_cap_mb": {"kind": "ordinal", "values": [0.1, 0.5, 4.0]},
    "threads": {"kind": "ordinal", "values": [1, 2]},
    "gradient_as_bucket_view": {"kind": "boolean"},
    "precision": {"kind": "categorical", "values": ["fp32", "bf16"]},
}
SQUARE = Space.from_json({name: {"kind": "float", "low": -1, "high": 1} for name in ("a", "b")})


def bowl(configuration: Configuration) -> float:
    """Smallest, 1, at a = 0.3, b = -0.2."""
    return 1 + (float(configuration["a"]) - 0.3) ** 2 + (float(configuration["b"]) + 0.2) ** 2


def tune(tuner: Tuner, count: int) -> list[float]:
    """Objectives of `count` trials on the bowl, one after the other."""
    objectives = []
    for _ in range(count):
        [configuration] = tuner.suggest(1)
        objectives.append(bowl(configuration))
        tuner.observe([Trial(configuration, TrialState.DONE, objectives[-1])])
    return objectives


def test_the_sample_grid_is_complete_and_repeated() -> None:
    grid = tuning_grid()
    space = Space.from_json(GRID)
    rows = grid[list(GRID)].to_dict("records")
    assert {space.key(row) for row in rows} == set(map(space.key, space.configurations()))
    assert grid.groupby(list(GRID)).size().unique().tolist() == [grid["repeat"].nunique()]
    assert (grid["seconds_per_1000_samples"] > 0).all()


@pytest.mark.thorough
def test_the_model_beats_random_on_the_sample_grid() -> None:
    """Mean log of best found / optimum over trials 6 to 20 and 20 seeds, on geometric means of the measured repeats.

    The difference of the means must be 2 standard errors of the paired differences: were both equally good, 20 other
    seeds would show that in 3 % of cases (Student's t, 19 degrees). With the seeds given, the outcome is exact.
    """
    space, grid = Space.from_json(GRID), tuning_grid()
    means = np.exp(np.log(grid["seconds_per_1000_samples"]).groupby([grid[name] for name in GRID]).mean())
    truth = {space.key(dict(zip(GRID, key, strict=True))): float(seconds) for key, seconds in means.items()}

    def regret(tuner: Tuner) -> float:
        seconds = []
        for _ in range(20):
            [configuration] = tuner.suggest(1)
            seconds.append(truth[space.key(configuration)])
            tuner.observe([Trial(configuration, TrialState.DONE, seconds[-1])])
        return float(np.mean(np.log(np.minimum.accumulate(seconds)[5:] / min(truth.values()))))

    model, chance = (
        np.array([regret(make(space, seed)) for seed in range(20)]) for make in (GaussianProcessTuner, RandomTuner)
    )
    gain = chance - model
    assert gain.mean() > 2 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_a_smooth_bottom_is_found_to_a_tenth_of_a_percent() -> None:
    assert min(tune(GaussianProcessTuner(SQUARE, seed=0), 25)) < 1.001


def test_a_batch_is_spread_and_not_one_point_in_five_copies() -> None:
    tuner = GaussianProcessTuner(SQUARE, seed=0)
    tune(tuner, 12)
    points = SQUARE.coordinates(tuner.suggest(5))
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)[np.triu_indices(5, 1)]
    assert distances.min() > 1e-3


def test_pending_trials_count_as_tried() -> None:
    tuner = GaussianProcessTuner(SQUARE, seed=0)
    tune(tuner, 12)
    [first, second] = tuner.suggest(2)
    tuner.observe([Trial(first, TrialState.LEASED, trial_id="held")])
    [now] = tuner.suggest(1)
    # Other random candidates are drawn after every trial, so it is near and not equal.
    assert np.linalg.norm(SQUARE.coordinates([now]) - SQUARE.coordinates([second])) < 0.3
    assert now != first


def failures(tuner: Tuner, count: int) -> list[bool]:
    """Return whether each of `count` trials failed, where everything with b > 0 does, close to the bottom."""
    failed = []
    for _ in range(count):
        [configuration] = tuner.suggest(1)
        failed.append(float(configuration["b"]) > 0)
        state = TrialState.FAILED if failed[-1] else TrialState.DONE
        tuner.observe([Trial(configuration, state, None if failed[-1] else bowl(configuration))])
    return failed


@pytest.mark.thorough
def test_a_region_that_fails_is_avoided() -> None:
    """After 7 trials less than half fail; with failures left out and nothing learned from them, 14 to 15 of 15 did."""
    later = [failures(GaussianProcessTuner(SQUARE, seed), 22)[7:] for seed in (0, 1)]
    assert sum(map(sum, later)) < 15


def test_repeats_of_one_configuration_are_all_learned_from() -> None:
    tuner = GaussianProcessTuner(SQUARE, seed=0)
    tune(tuner, 8)
    noisy = {"a": 0.5, "b": 0.5}
    tuner.observe([Trial(noisy, TrialState.DONE, 1.0 + index, trial_id=str(index)) for index in range(3)])
    assert len(tuner.suggest(1)) == 1


def test_the_newest_word_on_a_trial_counts() -> None:
    observed_twice, observed_once = (GaussianProcessTuner(SQUARE, seed=0) for _ in range(2))
    start = observed_once.suggest(5)
    observed_twice.observe(
        [
            Trial(configuration, TrialState.DONE, 9.0 + bowl(configuration), str(i))
            for i, configuration in enumerate(start)
        ]
    )
    for tuner in (observed_twice, observed_once):
        tuner.observe(
            [
                Trial(configuration, TrialState.DONE, bowl(configuration), str(i))
                for i, configuration in enumerate(start)
            ]
        )
    assert observed_twice.suggest(1) == observed_once.suggest(1)


def test_hundreds_of_measurements_are_thinned_out_to_the_best_and_the_newest() -> None:
    tuner = GaussianProcessTuner(SQUARE, seed=0)
    tuner.observe(
        [Trial(configuration, TrialState.DONE, bowl(configuration)) for configuration in SQUARE.random(600, seed=1)]
    )
    assert bowl(tuner.suggest(1)[0]) == pytest.approx(1, abs=0.05)
