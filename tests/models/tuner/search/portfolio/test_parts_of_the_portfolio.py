import numpy as np
import pytest

from crosswind.data.schema.errors import InvalidInputError
from crosswind.models.tuner.search.portfolio.encoding import foreign_points
from crosswind.models.tuner.search.portfolio.ensemble import evidence, shares
from crosswind.models.tuner.search.portfolio.fitted_source import FittedSource, best_and_spread, feature_numbers
from crosswind.models.tuner.search.portfolio.rotation import OWN, START, UNTRUSTED, turn
from crosswind.models.tuner.search.portfolio.sourced_process import SourcedProcess
from crosswind.models.tuner.search.scale import censored, relative_to_sources
from crosswind.models.tuner.search.source import Source
from crosswind.models.tuner.search.validity import expected_success
from crosswind.models.tuner.space.space import Space

SPACE = Space.from_json(
    {
        "batch": {"kind": "ordinal", "values": [1, 2, 4, 8]},
        "precision": {"kind": "categorical", "values": ["fp32", "bf16"]},
        "workers": {"kind": "int", "low": 0, "high": 10},
    }
)


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 2))


def test_a_source_that_ranks_backwards_gets_nothing_and_one_that_ranks_well_gets_most() -> None:
    y = np.arange(12.0)
    unsure = np.full(12, 20.0)
    good, bad, own = shares(np.array([y, -y]), np.zeros(12), unsure, y, seed=0)
    assert good > 0.9
    assert bad == 0
    assert own == pytest.approx(1 - good)


def test_the_own_model_takes_over_once_it_ranks_better() -> None:
    y = np.arange(12.0)
    halfway = np.concatenate([y[6:], y[:6]])
    assert shares(halfway[None], y, np.full(12, 1e-3), y, seed=0).tolist() == [0, 1]


def test_three_measurements_are_evidence_for_a_source_that_orders_them_and_against_one_that_does_not() -> None:
    y = np.array([0.0, 1.0, 2.0])
    right, wrong, silent = evidence(np.array([y, -y, np.ones(3)]), y)
    assert right > 0.5
    assert wrong < -1
    assert silent == 0


def test_a_mistake_weighs_more_the_surer_the_source_was_and_never_decides_alone() -> None:
    y = np.arange(5.0)
    one_wrong = np.array([[0.0, 1.0, 2.0, 4.0, 3.0], [0.0, 1.0, 2.0, 9.0, 3.0]])
    slight, bold = evidence(one_wrong, y)
    assert slight > bold > 0


def test_nothing_is_evidence_before_the_second_measurement() -> None:
    assert evidence(np.zeros((2, 0)), np.empty(0)).tolist() == [0, 0]
    assert evidence(np.ones((2, 1)), np.ones(1)).tolist() == [0, 0]
    assert evidence(np.array([[0.0, 3.0]]), np.ones(2)).tolist() == [0]  # equal measurements have no order


def test_evidence_is_calibrated_under_chance() -> None:
    rng = np.random.default_rng(0)  # the mean of a likelihood ratio under chance is 1: here of 2 measurements, 1 pair
    ratios = [np.exp(evidence(rng.normal(size=(1, 2)), rng.normal(size=2))[0]) for _ in range(2000)]
    assert np.mean(ratios) == pytest.approx(1, abs=0.05)  # 5 standard errors


def test_many_measurements_that_a_source_chose_itself_are_no_more_evidence_than_eight() -> None:
    expected = np.linspace(0, 2, 40)
    few, many = (evidence(-expected[None, :: 40 // n], expected[:: 40 // n])[0] for n in (8, 40))
    assert many == pytest.approx(few, rel=0.3)


def test_a_source_that_says_the_opposite_is_turned_around_by_a_few_values() -> None:
    of_sources, more = np.random.default_rng(1).normal(size=(1, 8)), np.random.default_rng(2).normal(size=(1, 40))
    process = SourcedProcess.fitted(np.ones(1), rows(8), of_sources, -0.7 * of_sources[0])
    mean, _ = process.predict(rows(40, 9) + 5.0, more)  # so far away that only the source counts
    assert np.corrcoef(mean, -more[0])[0, 1] > 0.99
    assert np.abs(mean + 0.7 * more[0]).max() < 0.4


def test_of_several_sources_the_one_that_fits_gets_the_weight() -> None:
    rng = np.random.default_rng(3)
    of_sources, more = rng.normal(size=(3, 12)), rng.normal(size=(3, 50))
    process = SourcedProcess.fitted(np.full(3, 1 / 3), rows(12), of_sources, of_sources[1])
    mean, deviation = process.predict(rows(50, 4) + 5.0, more)
    assert np.corrcoef(mean, more[1])[0, 1] > 0.97
    assert (np.abs(mean - more[1]) < 3 * deviation).all()


def test_with_one_value_it_is_unsure_where_sources_say_much() -> None:
    of_sources = np.array([[0.1], [0.1]])
    process = SourcedProcess.fitted(np.array([0.5, 0.5]), rows(1), of_sources, np.array([0.1]))
    _, deviation = process.predict(rows(2, 7) + 5.0, np.array([[0.0, 2.0], [0.0, -2.0]]))
    assert deviation[1] > 1.5 * deviation[0]


def test_values_of_elsewhere_lie_between_their_neighbours_and_incomplete_rows_are_left_out() -> None:
    points, complete = foreign_points(
        SPACE,
        [
            {"batch": 3, "precision": "fp8", "workers": 99},
            {"batch": 2, "workers": 1},
            {"batch": 8, "precision": "bf16", "workers": 5},
        ],
    )
    assert complete == [0, 2]
    assert points.tolist() == [[0.5, 0, 0, 1], [1, 0, 1, 0.5]]


def test_descriptors_become_columns_between_0_and_1() -> None:
    numbers = feature_numbers([{"nodes": 16, "vendor": "a"}, {"nodes": 4, "vendor": "b"}, {"nodes": 8}])
    assert numbers == pytest.approx(np.array([[1, 1, 0], [0, 0, 1], [0.5, 0, 0]]))


def test_very_many_values_are_thinned_to_the_best_half_and_a_spread() -> None:
    rows_left = best_and_spread(np.arange(100.0)[::-1], 10)
    assert {99, 98, 97, 96, 95} <= set(rows_left)
    assert len(rows_left) == 10
    assert 0 in rows_left


def test_a_source_of_two_rows_says_nothing() -> None:
    source = Source("old", SPACE.random(3, seed=0), [1.0, None, 2.0])
    assert FittedSource.of(SPACE, source, np.empty(0)) is None


def test_a_source_with_fewer_objectives_than_rows_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="source old has 1 objectives, expected one for each of its 2"):
        Source("old", SPACE.random(2, seed=0), [1.0])


@pytest.mark.parametrize("objective", [np.nan, np.inf])
def test_a_source_with_a_number_that_is_none_is_refused(objective: float) -> None:
    with pytest.raises(InvalidInputError, match=f"source old has objective {objective}, expected finite or None"):
        Source("old", SPACE.random(1, seed=0), [objective])


def test_where_a_source_failed_is_doubted_until_the_target_succeeds_there() -> None:
    X = np.linspace(0, 1, 21)[:, None]
    source, nothing = (X[X[:, 0] < 0.5], X[X[:, 0] >= 0.5]), np.empty((0, 1))
    low, high = expected_success(np.array([[0.1], [0.9]]), nothing, nothing, [source])
    assert low > 0.8
    assert high < 0.2
    [after] = expected_success(np.array([[0.9]]), np.array([[0.9], [0.88], [0.92]]), nothing, [source])
    assert after > 0.7


def test_without_failures_everything_is_taken_for_valid() -> None:
    assert expected_success(rows(4), rows(2), np.empty((0, 2)), []).tolist() == [1, 1, 1, 1]


def test_a_stopped_trial_counts_as_worse_than_its_bound() -> None:
    bounds = np.array([-1.0, 0.0, 2.0, 50.0])
    assert np.all(censored(bounds) >= bounds)
    assert censored(np.array([0.0]))[0] == pytest.approx(np.sqrt(2 / np.pi))


def test_objectives_are_placed_where_the_sources_expect_them() -> None:
    of_sources = np.array([[-1.0, 0.0, 1.0]])
    assert relative_to_sources(np.exp([4.0, 6.0, 8.0]), of_sources, 2.0).mean() == pytest.approx(0)
    assert relative_to_sources(np.array([5.0]), np.array([[1.5]]), 2.0) == pytest.approx([1.5])


def test_where_no_source_is_trusted_the_own_arms_soon_take_most_turns() -> None:
    first = [turn(np.array([0.0, 1.0]), place)[0] for place in range(100)]
    assert {type(arm) for arm in first} == {type(arm) for arm in (*OWN, *UNTRUSTED)}
    assert sum(arm in OWN for arm in first[:10]) >= 2
    assert sum(arm in OWN for arm in first[10:]) >= 70


def test_a_start_with_sources_begins_with_what_they_agree_on() -> None:
    assert turn(np.array([1.0, 0.0]), 0)[0] is START[0]


def test_points_of_another_space_know_what_applies_only_at_times() -> None:
    space = Space.from_json(
        {
            "stage": {"kind": "int", "low": 0, "high": 3},
            "offload": {"kind": "categorical", "values": ["none", "cpu"], "when": "stage >= 2"},
        }
    )
    foreign = [{"stage": 0}, {"stage": 9, "offload": "cpu"}, {"offload": "cpu"}]
    points, complete = foreign_points(space, foreign)
    assert complete == [0, 1]
    assert points[0].tolist() == space.coordinates([{"stage": 0}])[0].tolist()
    assert points[1, 1:].tolist() == space.coordinates([{"stage": 3, "offload": "cpu"}])[0, 1:].tolist()
