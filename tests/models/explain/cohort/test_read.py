"""Segments as they are read from a store: steps, samples, and what runs have in common."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.models.explain.drawn_segments import segments_from

from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import with_node_keys
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.memory import MEMORY
from crosswind.models.explain.cohort.columns import COLUMNS, OF_RUN
from crosswind.models.explain.cohort.read import read_segments
from crosswind.models.explain.cohort.segments import PeerEvidence, Segments

Rows = Callable[..., pd.DataFrame]
NS, RUNS, STEPS = 10**9, 8, 24


def column(segments: Segments | None, name: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    assert segments is not None
    return np.asarray(segments.values[:, COLUMNS.index(name)])


def stored_runs(store: Store, step_rows: Rows) -> list[Run]:
    """Runs of two ranks on two nodes, a second a step; the last four have another torch, and take longer."""
    runs, parts = [], []
    for number in range(RUNS):
        is_new = number >= RUNS // 2
        facts = {"torch": "2.7" if is_new else "2.6"}
        run = Run(f"r{number}", "w", "s", RunState.COMPLETED, 2, nodes=("n0", "n1"), software=facts)
        run = replace(run, started_ns=100 * number * NS)
        runs.append(run)
        rows = step_rows([[0.030, 0.050 if is_new else 0.040]] * STEPS)
        times = (rows["step"] + 100 * number) * NS
        parts.append(rows.assign(run_id=run.run_id, ts_ns=times))
    steps = pd.concat(parts)
    raw = {
        name: (steps[name] * (NS if name.endswith("_seconds") else 1)).round().astype(int).tolist()
        for name in steps
        if name != "run_id"
    }
    store.lake.append("steps", to_table(STEP, raw | {"run_id": steps["run_id"].tolist()}))
    with store.catalog.write() as session:
        for run in runs:
            session.runs.merge(run)
            for rank in range(2):
                session.ranks.merge(Rank(run.run_id, rank, f"n{rank}", 7, 0))
    return runs


def test_what_is_sampled_and_what_runs_have_in_common_is_in_their_segments(store: Store, step_rows: Rows) -> None:
    runs = stored_runs(store, step_rows)
    times = [(100 * number + second) * NS for number in range(RUNS) for second in (5, 15)]
    pages = [1000 * number + step for number in range(RUNS) for step in (0, 10 * number)]
    keys = {"ts_ns": times, "mono_ns": times, "node": ["n1"] * len(times), "device": ["node"] * len(times)}
    samples = keys | {"boot_id": ["b"] * len(times), "swapped_in_pages_total": pages}
    store.lake.append("memory", to_table(with_node_keys(MEMORY), samples))
    by_run = read_segments(store, runs)
    assert list(by_run) == [run.run_id for run in runs]
    for number, run in enumerate(runs):
        segments = by_run[run.run_id]
        assert column(segments, "swapped_in") == pytest.approx(number)
        assert column(segments, "throttled") == pytest.approx(0.0)
        assert column(segments, "software_compute") == pytest.approx(0.050 if number >= RUNS // 2 else 0.040)
        assert column(segments, "slow_node") == pytest.approx(
            0.0
        )  # a rank is always on the same node: which of them it is, is unknown
        assert np.isnan(column(segments, "placement_fabric")).all()
        assert np.isnan(column(segments, "stolen")).all()


def test_runs_of_which_nothing_is_known_but_their_steps(store: Store, step_rows: Rows) -> None:
    runs = [Run(run.run_id, "w", "s", RunState.COMPLETED) for run in stored_runs(store, step_rows)]
    segments = read_segments(store, runs[:1])["r0"]
    assert all(np.isnan(column(segments, name)).all() for name in OF_RUN)
    assert read_segments(store, []) == {}


def test_compute_is_lost_in_proportion_to_the_missing_clock(step_rows: Rows) -> None:
    segments = segments_from(step_rows([[0.030, 0.050]] * 10))
    assert segments is not None
    assert np.isnan(column(segments, "clock_lost")).all()
    segments = segments_from(step_rows([[0.030, 0.050]] * 10), evidence=PeerEvidence(shares={"clock_lost": 0.2}))
    assert segments is not None
    assert column(segments, "clock_lost") == pytest.approx(0.010)
    assert segments.of_ranks[:, COLUMNS.index("clock_lost")] == pytest.approx([0.0, 0.010])


def test_major_faults_are_those_of_the_rank_that_came_last(step_rows: Rows) -> None:
    rows = step_rows([[0.030, 0.050]] * 10)
    rows["major_faults"] = rows["rank"] * 3.0
    assert column(segments_from(rows), "major_faults") == pytest.approx(3.0)


def test_a_late_compilation_and_uneven_work_are_found_in_the_segments(step_rows: Rows) -> None:
    rows = step_rows([[0.030, 0.030]] * 40)
    late = (rows["step"] == 20) & (rows["rank"] == 1)
    rows.loc[late, ["compute_seconds", "cpu_user_seconds", "duration_seconds"]] += 0.5
    rows.loc[(rows["step"] == 20) & (rows["rank"] == 0), ["comm_seconds", "duration_seconds"]] += 0.5
    segments = segments_from(rows)
    assert column(segments, "recompiled").sum() == pytest.approx(0.5)
    assert column(segments, "stalled").sum() == pytest.approx(0.0)
    turns = segments_from(step_rows([[0.030, 0.050], [0.050, 0.030]] * 20))
    assert column(turns, "uneven").mean() == pytest.approx(0.010, rel=0.05)
    steady = segments_from(step_rows([[0.030, 0.050]] * 40))
    assert column(steady, "uneven").mean() == pytest.approx(0.0)
