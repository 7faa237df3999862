"""Runs of which a part was not recorded: their explanations, and what they lack."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from crosswind.data.lake.lake import arrow_schema
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.explanations import Explanation, Verdict
from crosswind.data.schema.run import Run
from crosswind.data.schema.steps import STEP
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.models.explain.explain import explain_run

Change = Callable[[pa.Table], pa.Table]
FIVE_MINUTES_NS = 300 * 10**9


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("lab")) as store:
        load_lab_samples(store)
        yield store


@pytest.fixture(scope="module")
def measured(store: Store) -> Run:
    """Rank 1 waited for its batches, on two hosts, from the beginning."""
    return next(run for run in all_runs(store) if run.tags.get("injected") == "slow_input:1:50" and run.world_size == 2)


def explained(store: Store, run: Run, name: str, change: Change) -> Explanation:
    """Of a run with the same steps, but for what was changed, and nothing else."""
    with store.catalog.write() as session:
        session.runs.merge(replace(run, run_id=name))
    sql = f"select * from {store.lake.files('step')} where run_id = ?"
    schema = arrow_schema(STEP)
    steps = store.lake.answer(lambda connection: connection.sql(sql, params=[run.run_id]).to_arrow_table())
    steps = change(steps.select(schema.names)).drop_columns(["run_id"])
    store.lake.append(
        name, steps.append_column("run_id", pa.array([name] * len(steps))).select(schema.names).cast(schema)
    )
    return explain_run(store, name)


def of_rank(rank: int) -> Change:
    return lambda steps: steps.filter(pc.equal(steps["rank"], rank))


def five_minutes_ahead(steps: pa.Table) -> pa.Table:
    """The clock of rank 1 is."""
    ahead = pc.add(steps["ts_ns"], pc.multiply(pc.cast(pc.equal(steps["rank"], 1), pa.int64()), FIVE_MINUTES_NS))
    return steps.set_column(steps.schema.get_field_index("ts_ns"), "ts_ns", ahead)


def without_cpu_times(steps: pa.Table) -> pa.Table:
    for name in ("cpu_user_seconds", "cpu_system_seconds", "run_queue_wait_seconds", "minor_faults", "major_faults"):
        place = steps.schema.get_field_index(name)
        steps = steps.set_column(place, name, pa.nulls(len(steps), steps.schema.field(name).type))
    return steps


@pytest.mark.thorough
def test_a_run_that_recorded_all_lacks_nothing(store: Store, measured: Run) -> None:
    assert explain_run(store, measured.run_id).missing == ()


def test_a_run_without_one_of_its_ranks_is_explained_by_the_others(store: Store, measured: Run) -> None:
    explanation = explained(store, measured, "without-rank-0", of_rank(1))
    assert (
        explanation.missing[0] == "1 of 2 ranks recorded steps: time lost by one of the others counts as the fabric's"
    )
    assert (explanation.verdict, explanation.cause, explanation.culprit_rank) == (Verdict.SLOW, "slow_input", 1)


def test_a_rank_that_waits_for_one_that_recorded_nothing_is_not_named(store: Store, measured: Run) -> None:
    explanation = explained(store, measured, "without-rank-1", of_rank(0))
    assert explanation.missing
    assert "rank 0" not in explanation.sentence


def test_clocks_apart_change_nothing_but_what_was_sampled(store: Store, measured: Run) -> None:
    explanation = explained(store, measured, "clocks-apart", five_minutes_ahead)
    assert (explanation.verdict, explanation.cause, explanation.culprit_rank) == (Verdict.SLOW, "slow_input", 1)


def test_without_cpu_times_phases_are_explained(store: Store, measured: Run) -> None:
    explanation = explained(store, measured, "without-cpu-times", without_cpu_times)
    assert "no CPU time of the loop's thread was recorded" in explanation.missing[0]
    assert (explanation.verdict, explanation.cause, explanation.culprit_rank) == (Verdict.SLOW, "slow_input", 1)


def test_without_samples_of_its_nodes_that_is_said(store: Store, measured: Run) -> None:
    elsewhere = replace(measured, nodes=("elsewhere",))
    assert (
        "nothing was sampled on its nodes" in explained(store, elsewhere, "unsampled", lambda steps: steps).missing[-1]
    )


def test_one_step_is_not_explained(store: Store, measured: Run) -> None:
    explanation = explained(store, measured, "one-step", lambda steps: steps.filter(pc.less(steps["step"], 1)))
    assert explanation.verdict is Verdict.INSUFFICIENT_EVIDENCE
    assert "no step with watched collectives of all ranks is recorded" in explanation.sentence
