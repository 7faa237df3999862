from collections.abc import Callable

import numpy as np
import pytest

from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.explanations import Comparison
from crosswind.data.schema.errors import InvalidInputError, NotFoundError
from crosswind.data.store.store import Store
from crosswind.models.explain.cohort.segments import Segments
from crosswind.models.explain.compare import compare, compare_runs

Draw = Callable[..., Segments]


def total(comparison: Comparison) -> float:
    parts = sum(share.seconds.value for share in comparison.shares) + comparison.unexplained.value
    assert parts == pytest.approx(comparison.difference.value, abs=1e-9)
    return comparison.faster_seconds + comparison.more_steps_seconds + parts


def test_the_difference_goes_to_causes_that_sum_to_it(drawn: Draw) -> None:
    slower = drawn(1, input=0.011, compute=0.050, run_queue_wait=0.011)
    comparison = compare(slower, drawn(2), differing={})
    assert total(comparison) == pytest.approx(comparison.slower_seconds, abs=1e-9)
    assert {share.cause: share.seconds.value / 60 for share in comparison.shares} == {
        "slow_input": pytest.approx(0.010),
        "cpu_contention": pytest.approx(0.010, rel=0.05),
    }
    assert comparison.difference.low < comparison.difference.value < comparison.difference.high
    assert "1.44x" in comparison.sentence
    assert len(comparison.also) == 1
    assert "Also: " in comparison.sentence


def test_more_steps_are_separated_from_slower_ones(drawn: Draw) -> None:
    short = drawn(2)
    short = Segments(short.run_id, 2, short.values[:40], short.culprits[:40], short.peers[:40])
    comparison = compare(drawn(1, checkpoint=0.02), short, differing={})
    assert comparison.more_steps_seconds == pytest.approx(20 * short.time)
    assert total(comparison) == pytest.approx(comparison.slower_seconds, abs=1e-9)
    assert comparison.shares[0].cause == "slow_checkpoint"


def test_runs_alike_have_no_difference_to_speak_of(drawn: Draw) -> None:
    slower, faster = sorted((drawn(1), drawn(2)), key=lambda run: run.time, reverse=True)
    assert compare(slower, faster, differing={}).sentence.startswith("No difference to speak of")


def test_a_difference_without_evidence_stays_unexplained(drawn: Draw) -> None:
    comparison = compare(drawn(1, compute=0.080), drawn(2), differing={})
    assert "no cause has enough evidence" in comparison.sentence
    assert comparison.unexplained.value == pytest.approx(0.040 * 60, rel=0.1)


@pytest.mark.thorough
def test_measured_runs_are_compared_and_their_differences_listed(store: Store) -> None:
    load_lab_samples(store)
    with store.catalog.read() as session:
        runs = session.runs.find(limit=500)
    late = next(run for run in runs if run.tags.get("injected", "").startswith("late_checkpoint:1:1000"))
    alike = [run for run in runs if run.configuration == late.configuration and run.workload == late.workload]
    quiet = next(run for run in alike if run.tags.get("injected") == "none")
    comparison = compare_runs(store, quiet.run_id, late.run_id)
    assert (comparison.slower, comparison.faster) == (late.run_id, quiet.run_id)
    assert comparison.shares[0].cause == "slow_checkpoint"
    again = compare_runs(store, late.run_id, quiet.run_id)
    assert (again.slower, again.faster, again.differing) == (late.run_id, quiet.run_id, comparison.differing)
    seconds = {share.cause: share.seconds.value for share in comparison.shares}
    assert {share.cause: share.seconds.value for share in again.shares} == pytest.approx(seconds)  # rows in any order
    assert not any(name.startswith("config.") for name in comparison.differing)
    other = next(run for run in runs if run.workload == late.workload and run.configuration != late.configuration)
    assert any(name.startswith("config.") for name in compare_runs(store, late.run_id, other.run_id).differing)
    stranger = next(run for run in runs if run.workload not in (late.workload, "neighbour"))
    with pytest.raises(InvalidInputError, match="expected one workload"):
        compare_runs(store, late.run_id, stranger.run_id)
    assert np.isfinite(total(comparison))


def test_what_cannot_be_compared_is_refused(store: Store) -> None:
    with pytest.raises(InvalidInputError, match="compared with itself"):
        compare_runs(store, "r1", "r1")
    with pytest.raises(NotFoundError, match="r1"):
        compare_runs(store, "r1", "r2")
