"""Counters that matter, in scenes where it is known which do."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.models.interference.scenes import counted
from tests.models.interference.stored import run

from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.effects import CounterColumn, CounterEffect
from crosswind.data.schema.errors import InvalidInputError
from crosswind.data.schema.prediction import Floats
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.models.association.outcomes import Outcomes
from crosswind.models.counters.counters import counters, ranked
from crosswind.models.counters.distance import distance_correlations
from crosswind.models.counters.importance import importances

HOUR_NS = 3_600_000_000_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def compared(log_excess: Floats) -> Outcomes:
    times = [(number * HOUR_NS, number * HOUR_NS + HOUR_NS // 2) for number in range(len(log_excess))]
    runs = tuple(Run(f"r{begin}", "w", "s", RunState.COMPLETED, started_ns=begin, ended_ns=end) for begin, end in times)
    return Outcomes("s", "w", runs, log_excess, np.zeros(len(runs), np.int64), len(runs))


def effects(columns: Floats, log_excess: Floats, per: str = "second") -> dict[str, CounterEffect]:
    shown = [CounterColumn("set", f"c{number:03d}", "", per, "", "") for number in range(columns.shape[1])]
    table = {name: pd.Series(column) for name, column in zip(shown, columns.T, strict=True)}
    return {effect.shown.column: effect for effect in ranked(compared(log_excess), table)}


@pytest.mark.thorough
def test_real_counters_are_found_among_noise_with_trends() -> None:
    """Three real ones among 100: of four scenes, ten of twelve found and at most two named falsely."""
    named = [
        [name for name, effect in effects(made.counters, made.log_excess).items() if effect.matters]
        for made in (counted(seed, noise=100) for seed in range(4))
    ]
    real = sum(name < "c003" for names in named for name in names)
    assert real >= 10
    assert sum(map(len, named)) - real <= 2


def test_the_runs_own_work_and_a_steady_pace_beside_it_only_follow_its_length() -> None:
    random = np.random.default_rng(1)
    excess = np.abs(random.normal(0, 0.2, 80))
    time = np.exp(excess)
    jitter = 1 + random.normal(0, 0.01, (80, 3))
    rates = np.column_stack([1e9 / time, np.full(80, 50.0), 100 * time]) * jitter  # sent bytes, a daemon, retries
    by_counter = effects(rates, excess)
    assert by_counter["c000"].follows_duration
    assert not by_counter["c000"].matters
    assert not by_counter["c001"].matters
    assert by_counter["c002"].matters
    assert by_counter["c002"].rho > 0.9


def test_a_gauge_that_falls_in_slow_runs_matters() -> None:
    random = np.random.default_rng(2)
    clock = random.uniform(1, 3, 60)
    effect = effects(clock[:, None], 0.3 * (3 - clock) + random.normal(0, 0.03, 60), per="")["c000"]
    assert effect.matters
    assert effect.rho < -0.8
    assert effect.deviation_high_ratio < 1


def test_missing_is_missing_and_not_zero() -> None:
    """The counter says nothing where it is known, and it is unknown of just the slow runs."""
    random = np.random.default_rng(3)
    excess = random.normal(0, 0.1, 80)
    counter = np.where(excess > 0.05, np.nan, random.uniform(5, 6, 80))
    effect = effects(counter[:, None], excess)["c000"]
    assert effect.runs == int((excess <= 0.05).sum())
    assert not effect.matters


def test_counters_that_hardly_vary_or_are_hardly_known_are_not_tested() -> None:
    random = np.random.default_rng(4)
    columns = random.random((60, 4))
    columns[:, 0] = 3.0
    columns[4:, 1] = 0.0
    columns[19:, 2] = np.nan
    assert list(effects(columns, random.normal(0, 0.1, 60))) == ["c003"]


@pytest.mark.thorough
def test_trees_know_an_interaction_where_rows_suffice() -> None:
    random = np.random.default_rng(5)
    columns = random.random((240, 6))
    outcome = np.where(columns[:, 0] > 0.5, 1.0, -1.0) * np.where(columns[:, 1] > 0.5, 1.0, -1.0)
    weights = importances(columns, outcome + random.normal(0, 0.1, 240), range(6))
    assert weights is not None
    assert set(np.argsort(-weights)[:2]) == {0, 1}
    assert weights[:2].min() > 10 * weights[2:].max()
    assert importances(columns[:99], outcome[:99], range(6)) is None
    assert importances(columns, random.normal(0, 1, 240), range(6)) is None


def test_trees_take_a_counter_that_only_the_newest_runs_have() -> None:
    columns = np.random.default_rng(5).random((120, 2))
    columns[:90, 1] = np.nan
    weights = importances(columns, columns[:, 0], range(2))
    assert weights is not None
    assert weights[0] > 10 * abs(weights[1])


def test_distance_correlation_sees_what_ranks_do_not() -> None:
    random = np.random.default_rng(6)
    outcome = random.normal(0, 1, 300)
    columns = np.column_stack([2 * outcome + 1, outcome**2, random.normal(0, 1, 300), np.ones(300)])
    line, parabola, noise, constant = distance_correlations(columns, outcome)
    assert line == pytest.approx(1.0)
    assert 0.3 < parabola < 0.7
    assert noise < 0.15
    assert np.isnan(constant)


@pytest.mark.thorough
def test_in_the_lab_the_surest_counters_are_those_of_its_faults(store: Store) -> None:
    """The recommender's runs, which are mostly communication, among all injected faults."""
    load_lab_samples(store)
    answer = counters(store, "embedding-recommender")
    assert (answer.system, answer.compared_runs) == ("fault-lab", 123)
    surest = [effect.shown.name for effect in answer.mattering]
    assert surest
    assert not any("bytes_total" in name and "transmit" in name for name in surest)
    assert any(effect.follows_duration and "transmit_bytes" in effect.shown.name for effect in answer.counters)
    assert answer.counters[0].q <= answer.counters[-1].q


def test_runs_without_samples_say_what_to_record(store: Store) -> None:
    with store.catalog.write() as session:
        for number in range(30):
            session.runs.merge(run(number))
    answer = counters(store)
    assert (answer.counters, answer.compared_runs) == ((), 30)
    assert answer.warnings == (
        "nothing was sampled on the runs' nodes while they ran: `crosswind agent` or `crosswind run` does",
    )


def test_few_runs_say_how_many_are_needed(store: Store) -> None:
    with store.catalog.write() as session:
        for number in range(5):
            session.runs.merge(run(number))
    answer = counters(store)
    assert answer.counters == ()
    assert answer.warnings[0].startswith("5 of 5 completed runs can be compared, expected 20 or more: a cohort needs 4")


def test_an_unknown_system_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInputError, match="no completed run is stored"):
        counters(store, None, "nowhere")
