from dataclasses import replace

import numpy as np
import pytest
from tests.models.forecast.runs import STEPS, mixed, steps

from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Prediction
from crosswind.models.baseline import AlwaysMedian, distribution, one_step_errors
from crosswind.models.forecast.in_run import InRun, InRunForecaster
from crosswind.models.forecast.past_runs import PastRun
from crosswind.models.scores import coverage, pinball_loss, skill
from crosswind.models.surrogate import LEVELS
from crosswind.models.surrogate.surrogate import NotFittedError

FRACTIONS = (0.1, 0.25, 0.5, 0.75)


@pytest.fixture(scope="module")
def forecaster() -> InRunForecaster:
    return InRunForecaster(FRACTIONS).fit(mixed(150))


def seen(forecaster: InRunForecaster, seconds: np.ndarray, count: int, cohort: str = "cohort-0") -> InRun:
    run = forecaster.start(cohort, len(seconds))
    run.observe(seconds[:count])
    return run


def test_a_calm_run_is_forecast_at_its_cohorts_time(forecaster: InRunForecaster) -> None:
    truth = steps(9_999)
    # Four standard errors of a level of 6 steps with 10 % noise would be 16 %, but the forecast leans on the cohort.
    assert seen(forecaster, truth, 6).total().at(0.5)[0] == pytest.approx(truth.sum(), rel=0.1)


def test_a_slow_run_is_forecast_slow(forecaster: InRunForecaster) -> None:
    slow, calm = steps(9_999, fault=2.0), steps(9_999)
    ratio = seen(forecaster, slow, 6).total().at(0.5)[0] / seen(forecaster, calm, 6).total().at(0.5)[0]
    assert ratio == pytest.approx(2.0, rel=0.15)  # the cohort draws the level by some percent towards itself


def test_a_calm_start_leaves_room_for_a_fault_that_begins_later(forecaster: InRunForecaster) -> None:
    # A quarter of all runs, a third of those that begin calmly, get twice as slow from the middle on.
    total = seen(forecaster, steps(9_999), 6).total()
    assert total.at(0.9)[0] > 1.25 * total.at(0.5)[0]


def test_a_change_in_mid_run_is_followed_and_told(forecaster: InRunForecaster) -> None:
    truth = steps(9_999, fault=2.0, begins=30)
    run = seen(forecaster, truth, 45)
    assert run.changes == pytest.approx([30], abs=1)
    assert run.remaining().at(0.5)[0] == pytest.approx(truth[45:].sum(), rel=0.15)


def test_checkpoints_are_no_change_and_are_expected(forecaster: InRunForecaster) -> None:
    truth = steps(9_999)
    run = seen(forecaster, truth, 57)
    assert run.changes == []
    ordinary, _, checkpoint = run.next_steps(3).at(0.5)
    assert checkpoint / ordinary == pytest.approx(4.0, rel=0.15)  # of a median of 50 runs, and a level that differs


def test_the_forecast_narrows_to_the_truth(forecaster: InRunForecaster) -> None:
    truth = steps(9_999)
    widths = [np.ptp(seen(forecaster, truth, count).total().values) for count in (6, 30, 45)]
    assert widths[0] > widths[1] > widths[2]
    done = seen(forecaster, truth, STEPS)
    assert done.total().values[0] == pytest.approx([truth.sum()] * len(LEVELS))


def test_skill_and_coverage_on_runs_never_seen(forecaster: InRunForecaster) -> None:
    past, later = mixed(150), mixed(120, seed=1)
    truth = np.array([run.seconds.sum() for run in later])
    said = Prediction(
        LEVELS, np.vstack([seen(forecaster, run.seconds, 15, run.cohort).total().values for run in later])
    )
    totals = {run.cohort: [other.seconds.sum() for other in past if other.cohort == run.cohort] for run in past}
    naive = np.vstack([_always_median(np.array(totals[run.cohort])) for run in later])
    # Half of the loss is of faults that nobody can foresee; knowing the level of the others takes away the rest.
    assert skill(pinball_loss(said, truth), pinball_loss(Prediction(LEVELS, naive), truth)) > 0.3
    # Three standard errors of 120 runs at 90 % are 8 %.
    assert coverage(said, truth, low=0.05, high=0.95) == pytest.approx(0.9, abs=0.08)


def test_the_next_step_lies_in_its_band(forecaster: InRunForecaster) -> None:
    inside = []
    for run in mixed(120, seed=2):
        band = seen(forecaster, run.seconds, 12, run.cohort).next_steps()
        inside.append(band.at(0.05)[0] <= run.seconds[12] <= band.at(0.95)[0])
    assert np.mean(inside) == pytest.approx(0.9, abs=0.08)  # three standard errors of 120 runs


def test_an_unknown_cohort_is_compared_with_itself(forecaster: InRunForecaster) -> None:
    truth = steps(9_999, level=7.0)
    truth[19::20] = 7.0
    run = seen(forecaster, truth, 15, "never-seen")
    assert not run.is_known
    # A quarter of the past runs slowed down after so many steps, so that the median is somewhat above.
    assert run.total().at(0.5)[0] == pytest.approx(truth.sum(), rel=0.25)


def test_steps_one_by_one_or_together_are_the_same(forecaster: InRunForecaster) -> None:
    truth = steps(5)
    one_by_one = forecaster.start("cohort-0", STEPS)
    for value in truth[:20]:
        one_by_one.observe(np.array([value]))
    assert one_by_one.total().values == pytest.approx(seen(forecaster, truth, 20).total().values)


def test_a_signal_that_foretells_the_rest_is_used() -> None:
    runs = mixed(150)
    begins_late = [np.mean(run.seconds[50:59]) > 1.5 * np.mean(run.seconds[:10]) for run in runs]
    with_signal = [
        replace(run, signals={"warning": np.full(STEPS, float(late))})
        for run, late in zip(runs, begins_late, strict=True)
    ]
    forecaster = InRunForecaster((0.1,)).fit(with_signal)
    medians = []
    for warning in (0.0, 1.0):
        run = forecaster.start("cohort-0", STEPS)
        run.observe(steps(9_999)[:6], {"warning": np.full(6, warning)})
        medians.append(run.total().at(0.5)[0])
    assert medians[1] > 1.25 * medians[0]  # a fault that doubles the second half adds half


def test_before_the_first_step_the_prior_is_the_forecast(forecaster: InRunForecaster) -> None:
    prior = Prediction(LEVELS, np.linspace(5, 9, len(LEVELS))[None, :])
    run = forecaster.start("cohort-0", STEPS, prior)
    assert run.total().values == pytest.approx(prior.values)
    with pytest.raises(InvalidInputError, match="nothing was predicted"):
        forecaster.start("cohort-0", STEPS).total()


def test_a_prior_that_was_right_before_is_believed_and_one_that_was_not_is_not() -> None:
    draw = np.random.default_rng(0)
    spread = np.exp(np.linspace(-0.02, 0.02, len(LEVELS)))
    runs = mixed(120)
    right = [replace(run, prior=tuple(run.seconds.sum() * spread)) for run in runs]
    wrong = [replace(run, prior=tuple(draw.uniform(1, 100) * spread)) for run in runs]
    assert InRunForecaster((0.1,)).fit(right).prior_weights[0] >= 0.5
    assert InRunForecaster((0.1,)).fit(wrong).prior_weights == (0.0,)


def test_a_single_enormous_step_moves_the_rest_little(forecaster: InRunForecaster) -> None:
    truth = steps(9_999)
    stalled = truth.copy()
    stalled[25] = 100.0
    calm_rest, rest = (seen(forecaster, seconds, 40).remaining().at(0.5)[0] for seconds in (truth, stalled))
    assert rest < 1.6 * calm_rest  # the step took a thousand times as long as others


@pytest.mark.parametrize("seconds", [[0.0], [-1.0], [np.nan], [np.inf], [[1.0]], []])
def test_what_is_no_step_time_is_refused_and_counts_for_nothing(
    forecaster: InRunForecaster, seconds: list[float]
) -> None:
    run = seen(forecaster, steps(1), 5)
    with pytest.raises(InvalidInputError, match="a run of cohort-0"):
        run.observe(np.array(seconds))
    assert run.pace.count == 5


def test_more_steps_than_said_are_refused(forecaster: InRunForecaster) -> None:
    run = seen(forecaster, steps(1), STEPS)
    with pytest.raises(InvalidInputError, match="61 steps of a run of cohort-0, expected 60"):
        run.observe(np.array([0.1]))
    with pytest.raises(InvalidInputError, match="next 1 steps after 60 of 60"):
        run.next_steps()


def test_too_few_runs_and_no_fit_are_refused() -> None:
    with pytest.raises(NotFittedError):
        InRunForecaster().start("cohort-0", STEPS)
    with pytest.raises(InvalidInputError, match="5 earlier runs are too few to learn from, expected at least 8"):
        InRunForecaster().fit(mixed(5))
    with pytest.raises(InvalidInputError, match="earlier run 0 has 3 steps, expected at least 10"):
        InRunForecaster().fit([PastRun("a", np.ones(3))])
    with pytest.raises(InvalidInputError, match="total_steps is 1"):
        InRunForecaster((0.1,)).fit(mixed(20)).start("cohort-0", 1)


@pytest.mark.parametrize("fractions", [(), (0.5, 0.1), (0.0, 0.5), (0.5, 1.0), (0.2, 0.2)])
def test_impossible_fractions_are_refused(fractions: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInputError, match="expected rising numbers between 0 and 1"):
        InRunForecaster(fractions).fit(mixed(20))


def test_a_signal_that_is_no_number_is_refused() -> None:
    runs = [replace(run, signals={"warning": np.zeros(STEPS)}) for run in mixed(30)]
    run = InRunForecaster((0.1,)).fit(runs).start("cohort-0", STEPS)
    with pytest.raises(InvalidInputError, match="signal warning"):
        run.observe(np.array([0.1]), {"warning": np.array([np.nan])})
    broken = replace(runs[0], signals={"warning": np.zeros(3)})
    with pytest.raises(InvalidInputError, match="signal warning of earlier run 0"):
        InRunForecaster((0.1,)).fit([broken, *runs[1:]])


def _always_median(totals: np.ndarray) -> np.ndarray:
    return distribution(AlwaysMedian().forecast(totals), one_step_errors(AlwaysMedian(), totals)).values
