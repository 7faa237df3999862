"""Evidence of a run by itself: of its ranks, its own steps and formulas, over steps that are drawn."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from tests.models.explain.drawn_segments import segments_from

from crosswind.data.schema.answers.explanations import UNKNOWN, Expectation, Explanation, Interval, Verdict
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.explain import explain
from crosswind.models.explain.within import Within
from crosswind.models.explain.within.change import change_of
from crosswind.models.explain.within.formulas import by_formulas
from crosswind.models.explain.within.lag import lag_of

Rows = Callable[..., pd.DataFrame]
STEPS = 60


def noisy(seed: int, ranks: int = 2, spread: float = 0.02) -> np.ndarray:
    return 0.05 * np.random.default_rng(seed).normal(1.0, spread, (STEPS, ranks))


def segments(step_rows: Rows, local: np.ndarray) -> Segments:
    made = segments_from(step_rows(local.tolist()))
    assert made is not None
    return made


def asked(step_rows: Rows, local: np.ndarray, cohort: int = 0) -> Explanation:
    others = [segments(step_rows, noisy(100 + seed)) for seed in range(cohort)]
    return explain("r", segments(step_rows, local), others)


@pytest.mark.parametrize("cohort", [0, 1, 2])
def test_a_rank_that_others_wait_for_is_named_without_a_cohort(step_rows: Rows, cohort: int) -> None:
    local = noisy(1)
    local[:, 1] += 0.2
    explanation = asked(step_rows, local, cohort)
    assert (explanation.verdict, explanation.cause, explanation.phase) == (
        Verdict.ONE_RANK_DELAYS,
        UNKNOWN,
        "compute",
    )
    assert explanation.expected_from is Expectation.OTHER_RANKS
    assert explanation.culprit_rank == 1
    assert "ank 1 spends 200 ms more than its peer before each collective; no counter says why" in explanation.sentence
    assert explanation.lag is not None
    assert explanation.lag.seconds.low <= 0.2 <= explanation.lag.seconds.high
    assert (explanation.lag.since_step, explanation.lag.is_usual) == (None, False)
    assert explanation.expected_seconds == pytest.approx(0.052 * explanation.steps, rel=0.02)


@pytest.mark.parametrize(("slow", "usual"), [(0, False), (5, True)])
def test_of_a_cohort_that_shows_the_same_the_rank_is_named_and_the_run_is_not_slow(
    step_rows: Rows, slow: int, usual: bool
) -> None:
    def late(seed: int) -> Segments:
        local = noisy(seed)
        local[:, 1] += 0.2
        return segments(step_rows, local)

    quick = [segments(step_rows, noisy(100 + seed)) for seed in range(5 - slow)]
    explanation = explain("r", late(1), [*quick, *(late(10 + seed) for seed in range(slow))])
    assert explanation.lag is not None
    assert (explanation.lag.rank, explanation.lag.is_usual) == (1, usual)
    assert (explanation.cause, explanation.phase, explanation.culprit_rank) == (UNKNOWN, "compute", 1)
    assert explanation.verdict is (Verdict.ONE_RANK_DELAYS if usual else Verdict.SLOW)
    assert "ank 1 spends 200 ms more than its peer before each collective" in explanation.sentence
    assert ("usual time" in explanation.sentence) is usual


def test_a_lag_that_counters_explain_has_their_cause(step_rows: Rows) -> None:
    local = noisy(1)
    local[:, 1] += 0.2
    rows = step_rows(local.tolist(), run_queue_wait_seconds=0.001)
    rows.loc[rows["rank"] == 1, "run_queue_wait_seconds"] = 0.19
    explanation = explain("r", segments_from(rows), [])
    assert (explanation.cause, explanation.culprit_rank) == ("cpu_contention", 1)
    assert "CPU contention took 95% of that" in explanation.sentence


def test_of_many_ranks_the_cost_ends_where_the_next_one_would_be_waited_for(step_rows: Rows) -> None:
    local = noisy(1, ranks=6, spread=0.001)
    local[:, 2] += 0.05
    local[:, 4] += 0.03
    lag = lag_of(segments(step_rows, local))
    assert lag is not None
    assert lag.rank == 2
    assert lag.seconds.value == pytest.approx(0.05, rel=0.02)
    assert lag.cost == pytest.approx(0.02, rel=0.02)


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("spread", [0.02, 0.3])
def test_ranks_that_differ_by_chance_do_not_lag(step_rows: Rows, ranks: int, spread: float) -> None:
    lags = [lag_of(segments(step_rows, noisy(seed, ranks, spread).clip(0.001))) for seed in range(10)]
    assert lags == [None] * 10


def test_one_pause_is_no_lag(step_rows: Rows) -> None:
    local = noisy(1)
    local[30, 1] += 10.0
    assert lag_of(segments(step_rows, local)) is None


def test_a_rank_that_is_late_now_and_then_is_said_to_be_so(step_rows: Rows) -> None:
    local = noisy(1)
    local[::2, 1] += 0.2
    explanation = asked(step_rows, local)
    assert "before 50% of the collectives" in explanation.sentence
    assert "rank 1 spends 200 ms more" in explanation.sentence


def test_slower_steps_since_a_step_make_a_run_slow(step_rows: Rows) -> None:
    local = noisy(1)
    local[40:] *= 2
    explanation = asked(step_rows, local)
    assert (explanation.verdict, explanation.expected_from) == (Verdict.SLOW, Expectation.OWN_STEPS)
    assert explanation.change is not None
    assert (explanation.change.first_step, explanation.change.last_step) == (40, None)
    assert explanation.sentence.startswith("Slow: since step 40 a step takes 10")
    assert explanation.excess is not None
    assert explanation.excess.low > 0


def test_a_change_that_passes_has_a_last_step(step_rows: Rows) -> None:
    local = noisy(1)
    local[20:40] *= 3
    change = change_of(segments(step_rows, local))
    assert change is not None
    assert (change.steps.first_step, change.steps.last_step) == (20, 39)


def test_a_change_after_steps_that_were_a_little_slower_begins_where_the_levels_fit_best(step_rows: Rows) -> None:
    local = noisy(1)
    local[18:34] *= 1.3
    local[34:] *= 20
    change = change_of(segments(step_rows, local))
    assert change is not None
    assert (change.steps.first_step, change.steps.last_step) == (34, None)


@pytest.mark.parametrize("factors", [np.ones(STEPS), np.r_[np.full(15, 3.0), np.ones(45)], np.r_[np.ones(57), 9, 1, 1]])
def test_steady_steps_a_slow_start_and_one_long_step_are_no_change(step_rows: Rows, factors: np.ndarray) -> None:
    assert change_of(segments(step_rows, noisy(1) * factors[:, None])) is None


def test_a_lag_since_a_step_says_so(step_rows: Rows) -> None:
    local = noisy(1)
    local[40:, 1] += 0.2
    explanation = asked(step_rows, local)
    assert (explanation.verdict, explanation.cause, explanation.culprit_rank) == (Verdict.SLOW, UNKNOWN, 1)
    assert "before each collective since step 40" in explanation.sentence


def test_a_run_that_shows_nothing_abstains_and_says_what_was_looked_at(step_rows: Rows) -> None:
    explanation = asked(step_rows, noisy(1))
    assert explanation.verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert explanation.excess is None
    assert "no rank keeps the others waiting; its own steps did not become slower" in explanation.sentence


def test_formulas_say_what_to_expect_where_nothing_else_does(step_rows: Rows) -> None:
    run = segments(step_rows, noisy(1))
    beyond = explain("r", run, [], within=Within(formulas=Interval(0.01, 0.005, 0.02)))
    assert (beyond.verdict, beyond.expected_from, beyond.cause) == (
        Verdict.PERHAPS_SLOW,
        Expectation.FORMULAS,
        None,
    )
    assert "formulas expect 10 ms [5 ms to 20 ms] a step, it took 52" in beyond.sentence
    within = explain("r", run, [], within=Within(formulas=Interval(0.04, 0.02, 0.08)))
    assert within.verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert "formulas expect 40 ms [20 ms to 80 ms] a step" in within.sentence


def test_formulas_need_a_network_and_a_device_of_the_table(store: Store) -> None:
    described = {"layers": 12, "hidden": 768, "global_batch": 8, "accelerator": "A100"}
    others = ({"lr": 1}, {**described, "accelerator": "abacus"})
    first, *without = (Run("r", "gpt", "lab", RunState.COMPLETED, 2, one) for one in (described, *others))
    expected = by_formulas(store, first)
    assert expected is not None
    assert 0 < expected.low < expected.value < expected.high
    assert [by_formulas(store, run) for run in without] == [None, None]
