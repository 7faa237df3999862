"""Time that threads other than the loop's waited, from the counters of each rank's process."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from crosswind.data.lake.lake import to_table
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.metric import NODE_KEYS, MetricSet
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.process import PROCESS
from crosswind.models.explain.cohort import step_rows
from crosswind.models.explain.cohort.read import read_segments
from crosswind.models.explain.cohort.step_rows import ranks_of, spans_of
from crosswind.models.explain.evidence.thread_waits import thread_waits

SECOND = 10**9
RUN = Run("r", "w", "s", RunState.COMPLETED)
OTHER = Run("o", "w", "s", RunState.COMPLETED)
STORED = MetricSet("process", "watched processes", NODE_KEYS + PROCESS.columns)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path) as store:
        yield store


def steps(store: Store, run: Run, rank: Rank, seconds: Sequence[int]) -> None:
    """A step at each of these seconds."""
    with store.catalog.write() as session:
        session.runs.merge(run)
        session.ranks.merge(rank)
    times = [second * SECOND for second in seconds]
    rows = {"ts_ns": times, "run_id": [run.run_id] * len(times), "rank": [rank.rank] * len(times)}
    store.lake.append(f"s-{run.run_id}-{rank.rank}", to_table(STEP, {**rows, "step": list(range(len(times)))}))


def samples(
    store: Store, node: str, pid: int, rows: Sequence[tuple[int, int | None, int | None]], *, start: int = 1
) -> None:
    """Rows of second, nanoseconds that all threads waited, and nanoseconds that the main one did."""
    seconds, whole, main = zip(*rows, strict=True)
    count = len(rows)
    times = [second * SECOND for second in seconds]
    columns = {"ts_ns": times, "mono_ns": times, "node": [node] * count, "device": [str(pid)] * count}
    columns |= {"boot_id": ["b"] * count, "start_ticks": [start] * count}
    waits = {"run_queue_wait_seconds_total": whole, "main_thread_run_queue_wait_seconds_total": main}
    store.lake.append(f"p-{node}-{pid}-{start}", to_table(STORED, {**columns, **waits}))


def waits(store: Store, runs: Sequence[Run]) -> dict[str, float]:
    return thread_waits(store.lake, ranks_of(store, runs), spans_of(store, runs))


def test_other_threads_waited_what_the_process_did_and_its_main_thread_did_not(store: Store) -> None:
    steps(store, RUN, Rank("r", 0, "n", 7, 0), range(11))
    samples(store, "n", 7, [(0, 0, 0), (4, 4 * SECOND, SECOND), (8, 9 * SECOND, 2 * SECOND), (50, 99 * SECOND, 0)])
    assert waits(store, [RUN]) == {"r": pytest.approx(7 / (11 * 0.8))}


def test_the_worst_rank_counts(store: Store) -> None:
    for rank, growth in [(0, 1), (1, 5)]:
        steps(store, RUN, Rank("r", rank, f"n{rank}", 7, 0), range(5))
        samples(store, f"n{rank}", 7, [(0, 0, 0), (2, 0, 0), (4, growth * SECOND, 0)])
    assert waits(store, [RUN]) == {"r": pytest.approx(1.0)}


def test_runs_that_one_process_made_one_after_the_other_have_what_grew_in_each(store: Store) -> None:
    steps(store, RUN, Rank("r", 0, "n", 7, 0), range(5))
    steps(store, OTHER, Rank("o", 0, "n", 7, 0), range(10, 15))
    grown = [(0, 0, 0), (2, SECOND, 0), (4, 5 * SECOND, 0), (10, 90 * SECOND, 0), (12, 91 * SECOND, 0)]
    samples(store, "n", 7, [*grown, (14, 100 * SECOND, 0)])
    assert waits(store, [RUN, OTHER]) == {"r": pytest.approx(1.0), "o": pytest.approx(2.0)}


def test_a_pid_used_again_within_the_run_is_no_wait(store: Store) -> None:
    steps(store, RUN, Rank("r", 0, "n", 7, 0), range(5))
    samples(store, "n", 7, [(0, 70 * SECOND, 0), (1, 71 * SECOND, 0)], start=1)
    samples(store, "n", 7, [(3, 5 * SECOND, 0), (4, 9 * SECOND, 0)], start=2)
    assert waits(store, [RUN]) == {"r": pytest.approx(1.0)}


def test_few_samples_or_none_or_none_of_the_waits_give_nothing(store: Store) -> None:
    steps(store, RUN, Rank("r", 0, "n", 7, 0), range(5))
    assert waits(store, [RUN]) == {}
    samples(store, "n", 7, [(0, 0, 0), (4, SECOND, 0)])
    assert waits(store, [RUN]) == {}
    assert waits(store, [OTHER]) == {}
    samples(store, "n", 7, [(0, None, None), (2, None, None), (4, None, None)])
    assert waits(store, [RUN]) == {}


@pytest.mark.thorough
def test_runs_read_one_by_one_give_the_same_as_together(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    load_lab_samples(store)
    runs = [run for run in all_runs(store) if "split" in run.tags][:9]
    together = read_segments(store, runs)
    monkeypatch.setattr(step_rows, "ROWS_TOGETHER", 1)
    alone = read_segments(store, runs)
    assert list(together) == list(alone) == [run.run_id for run in runs]
    for run_id, segments in together.items():
        np.testing.assert_allclose(segments.values, alone[run_id].values, rtol=1e-9)
        np.testing.assert_array_equal(segments.culprits, alone[run_id].culprits)
