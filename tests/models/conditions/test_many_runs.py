"""Conditions of many runs at once are those of each by itself, and only what is asked for is looked up."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.errors import InvalidInputError, MalformedError
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.qdisc import QDISC
from crosswind.models.conditions import conditions_at_start
from crosswind.models.conditions.conditions import NAMES
from crosswind.models.conditions.sampled import NAMES as SAMPLED
from crosswind.models.spread import PREDICTIVE

SECOND = 10**9
RUNS = 300
NODES, COHORTS = 6, 3
STATES = {RunState.COMPLETED: 0.7, RunState.FAILED: 0.26, RunState.RUNNING: 0.02, RunState.LOST: 0.02}
Put = Callable[..., None]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder: Path = tmp_path_factory.mktemp("lab")
    with Store.open(folder / "store") as store:
        load_lab_samples(store)
        yield store


def made_up() -> list[Run]:
    """Runs that overlap, on none to three nodes of two systems: ended, going on, and lost without an end."""
    rng = np.random.default_rng(0)
    runs = []
    for number in range(RUNS):
        state = list(STATES)[int(rng.choice(len(STATES), p=list(STATES.values())))]
        began = int(rng.integers(1, 6000)) * SECOND
        ended = None if state in (RunState.RUNNING, RunState.LOST) else began + int(rng.integers(0, 60)) * SECOND
        nodes = tuple(f"n{node}" for node in rng.choice(NODES, int(rng.integers(4)), replace=False))
        names = (f"r{number}", f"workload-{rng.integers(COHORTS)}", f"system-{rng.integers(2)}", state)
        size = None if number % 7 == 0 else int(rng.integers(1, 9))
        runs.append(Run(*names, world_size=size, nodes=nodes, started_ns=began, ended_ns=ended))
    return runs


def at_work(runs: Sequence[Run], asked: Run, *, nodes: Sequence[str] | None) -> list[Run]:
    """By the definition: others of its system in progress just before it, on these nodes if any are given."""
    return [
        run
        for run in runs
        if run.run_id != asked.run_id
        and run.system == asked.system
        and began(run) < began(asked)
        and (run.state is RunState.RUNNING or (run.ended_ns is not None and run.ended_ns >= began(asked)))
        and (nodes is None or set(run.nodes) & set(nodes))
    ]


def began(run: Run) -> int:
    assert run.started_ns is not None
    return run.started_ns


def idle_seconds(runs: Sequence[Run], asked: Run) -> float:
    ended = [
        run.ended_ns
        for run in runs
        if run.system == asked.system and set(run.nodes) & set(asked.nodes) and run.ended_ns is not None
    ]
    before = [end for end in ended if end < began(asked)]
    return (began(asked) - max(before)) * 1e-9 if before else np.nan


def test_neighbours_of_many_runs_are_those_that_the_definition_names(store: Store, keep: Put) -> None:
    runs = made_up()
    keep(*runs)
    conditions = conditions_at_start(store, runs)
    for row, asked in enumerate(runs):
        sharing = at_work(runs, asked, nodes=asked.nodes)
        assert conditions["condition.neighbour_runs"][row] == len(sharing)
        assert conditions["condition.system_runs"][row] == len(at_work(runs, asked, nodes=None))
        expected = 0.0 if sharing else idle_seconds(runs, asked)
        np.testing.assert_equal(conditions["condition.idle_seconds"][row], expected)
    assert conditions["condition.neighbour_runs"].max() > 1
    assert conditions["condition.idle_seconds"].gt(0).sum() > 20


@pytest.mark.thorough
def test_a_run_s_conditions_are_the_same_whoever_else_is_asked_about(store: Store, keep: Put) -> None:
    runs = made_up()
    keep(*runs)
    together = conditions_at_start(store, runs)
    for place in range(0, RUNS, 10):
        alone = conditions_at_start(store, [runs[place]])
        pd.testing.assert_frame_equal(alone, together[place : place + 1].reset_index(drop=True), check_exact=True)


def test_the_newest_ratio_is_to_the_median_of_the_cohorts_runs_that_had_ended(store: Store, keep: Put) -> None:
    runs = [run for run in made_up() if run.state is RunState.COMPLETED and run.ended_ns != run.started_ns]
    keep(*runs)
    ratios = conditions_at_start(store, runs)["condition.last_log_ratio"]
    rows = [row for row in range(len(runs)) if not np.isnan(ratios[row])]
    assert len(rows) > 20
    # numpy takes the logarithm of an array and of one number by different code: a rounding apart.
    np.testing.assert_allclose(ratios[rows], [last_log_ratio(runs, runs[row]) for row in rows], rtol=0, atol=1e-12)


def last_log_ratio(runs: Sequence[Run], asked: Run) -> float:
    """By the definition, run by run, from the newest end before it."""
    before = [run for run in ended_before(runs, asked) if run.system == asked.system]
    for run in [neighbour for neighbour in before if set(neighbour.nodes) & set(asked.nodes)]:
        own = [earlier for earlier in ended_before(runs, run) if cohort(earlier) == cohort(run)]
        if len(own) >= 3:
            return float(np.log(seconds(run)) - np.median([np.log(seconds(earlier)) for earlier in own]))
    return float("nan")


def ended_before(runs: Sequence[Run], asked: Run) -> list[Run]:
    ended = [run for run in runs if run.ended_ns is not None and run.ended_ns < began(asked)]
    # Of those that ended in one second the catalog's newest counts as the newest.
    return sorted(ended, key=lambda run: (run.ended_ns or 0, began(run), run.run_id), reverse=True)


def cohort(run: Run) -> tuple[str, str, int | None]:
    return run.system, run.workload, run.world_size


def seconds(run: Run) -> float:
    assert run.seconds is not None
    return run.seconds


@pytest.mark.thorough
def test_conditions_asked_for_by_name_are_those_of_the_whole_table(lab: Store) -> None:
    runs = all_runs(lab)
    whole, selected = conditions_at_start(lab, runs), conditions_at_start(lab, runs, names=PREDICTIVE)
    assert list(whole) == list(NAMES)
    assert list(selected) == list(PREDICTIVE)
    # DuckDB adds samples in no fixed order: sums differ in their last digits from one query to the next.
    pd.testing.assert_frame_equal(selected, whole[list(PREDICTIVE)], check_exact=False, rtol=1e-9, atol=1e-6)
    assert selected.notna().mean().min() > 0.95
    assert selected["condition.neighbour_ranks"].equals(whole["condition.neighbour_ranks"])


@pytest.mark.parametrize("name", ["condition.neighbour_runs", "condition.others_cores"])
def test_what_nobody_asked_for_is_not_looked_up(store: Store, keep: Put, sample: Put, name: str) -> None:
    runs = made_up()
    keep(*runs)
    sample(QDISC, [1, 2], device="eth0", drops_total=[0, 1], backlog_bytes=[0, 0])
    (store.lake.root / "set=qdisc" / "date=1970-01-01" / "part-bad.parquet").write_bytes(b"PAR1 torn")
    assert len(conditions_at_start(store, runs, names=[name])) == RUNS
    with pytest.raises(MalformedError, match=r"part-bad\.parquet"):
        conditions_at_start(store, runs)


def test_an_unknown_condition_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInputError, match=r"condition 'condition\.weather': expected one of condition\.cpu_busy"):
        conditions_at_start(store, [], names=["condition.weather"])


def test_no_names_give_a_row_a_run_without_columns(store: Store) -> None:
    assert conditions_at_start(store, made_up(), names=[]).shape == (RUNS, 0)
    assert {f"condition.{name}" for name in SAMPLED} < set(NAMES)
