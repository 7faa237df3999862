"""Cached condensed segments: they give the same as the rows of their runs, and hold as long as those stay."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.models.explain.cohort.test_read import NS, stored_runs
from tests.models.explain.drawn_segments import ALONE, own_of

from crosswind.data.catalog.runs import RunFilter
from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import with_node_keys
from crosswind.data.schema.run import Rank, Run
from crosswind.data.schema.steps import STEP
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.memory import MEMORY
from crosswind.models.explain.cohort import read as reading
from crosswind.models.explain.cohort.columns import COLUMNS
from crosswind.models.explain.cohort.own_segments import condensed
from crosswind.models.explain.cohort.read import read_cohort, read_segments
from crosswind.models.explain.cohort.segments import Segments, segments_of
from crosswind.models.explain.explain import explain_run

Rows = Callable[..., pd.DataFrame]


@pytest.fixture
def ended(store: Store, step_rows: Rows) -> list[Run]:
    """Eight runs that have ended."""
    runs = [replace(run, ended_ns=(run.started_ns or 0) + 40 * NS) for run in stored_runs(store, step_rows)]
    with store.catalog.write() as session:
        for run in runs:
            session.runs.merge(run)
    return all_runs(store, RunFilter())


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of runs whose rows are read, as it happens."""
    seen: list[str] = []
    real = reading.read_own_segments

    def noting(store: Store, runs: Sequence[Run], ranks: Sequence[Rank], spans: pd.DataFrame) -> object:
        seen.extend(run.run_id for run in runs)
        return real(store, runs, ranks, spans)

    monkeypatch.setattr(reading, "read_own_segments", noting)
    return seen


def sample(store: Store, part: str, second: int) -> None:
    """Two samples of n1, two seconds apart."""
    times = [second * NS, (second + 2) * NS]
    keys = {"ts_ns": times, "mono_ns": times, "node": ["n1"] * 2, "device": ["node"] * 2, "boot_id": ["b"] * 2}
    store.lake.append(part, to_table(with_node_keys(MEMORY), keys | {"swapped_in_pages_total": [0, 4]}))


def contents(segments: Segments) -> list[object]:
    work = sorted(segments.work.items())
    return [segments.means.tolist(), segments.contrasts().tolist(), work, segments.ranks, segments.count]


def test_a_condensed_run_has_the_means_of_its_segments(drawn: Callable[..., Segments]) -> None:
    own = own_of(replace(drawn(1), culprits=np.arange(60.0) % 3, work={0: 0.03, 1: 0.04}))
    whole, rollup = segments_of(own, ALONE), segments_of(condensed(own), ALONE)
    assert rollup.values.shape == (3, len(COLUMNS))
    assert rollup.means == pytest.approx(whole.means, rel=1e-12, nan_ok=True)
    assert rollup.contrasts() == pytest.approx(whole.contrasts(), nan_ok=True)


def test_a_condensed_run_is_not_read_again_and_gives_the_same(store: Store, ended: list[Run], read: list[str]) -> None:
    sample(store, "memory", 5)
    first_asked, first = read_cohort(store, ended, {"r0"})
    assert sorted(read) == sorted(run.run_id for run in ended)
    read.clear()
    again_asked, again = read_cohort(store, ended, {"r0"})
    assert read == ["r0"]
    assert list(again) == list(first) == [run.run_id for run in ended]
    for run_id, segments in again.items():
        np.testing.assert_equal(contents(segments), contents(first[run_id]))
    whole = read_segments(store, ended)
    for run_id, segments in again.items():
        np.testing.assert_allclose(segments.means, whole[run_id].means, rtol=1e-12)
        np.testing.assert_allclose(segments.contrasts(), whole[run_id].contrasts(), rtol=1e-9, atol=1e-15)
    np.testing.assert_equal(again_asked["r0"].values, first_asked["r0"].values)
    np.testing.assert_equal(again_asked["r0"].values, whole["r0"].values)


def test_what_is_stored_of_one_run_later_is_seen(store: Store, ended: list[Run], read: list[str]) -> None:
    read_cohort(store, ended, set())
    read.clear()
    sample(store, "late", 305)
    _, peers = read_cohort(store, ended, set())
    assert read == ["r3"]
    assert peers["r3"].means[COLUMNS.index("swapped_in")] == pytest.approx(2.0)
    read.clear()
    rows = {"run_id": ["r5"], "rank": [1], "step": [90], "ts_ns": [590 * NS], "duration_seconds": [NS]}
    store.lake.append("more", to_table(STEP, rows))
    read_cohort(store, ended, set())
    assert read == ["r5"]
    read.clear()
    with store.catalog.write() as session:
        session.runs.merge_rank(Rank("r6", 2, "n1", 8, 0))
    read_cohort(store, ended, set())
    assert read == ["r6"]


def test_compaction_changes_no_explanation(store: Store, ended: list[Run]) -> None:
    before = explain_run(store, "r0")
    compact(store.lake, settle_seconds=-1)
    assert asdict(explain_run(store, "r0")) == asdict(before)


def test_a_run_in_progress_is_read_every_time(store: Store, step_rows: Rows, read: list[str]) -> None:
    runs = stored_runs(store, step_rows)
    for _ in range(2):
        read.clear()
        read_cohort(store, runs, set())
        assert len(read) == len(runs)


def test_a_run_without_collectives_is_known_to_have_none(store: Store, ended: list[Run], read: list[str]) -> None:
    bare = replace(ended[0], run_id="bare")
    read_cohort(store, [bare], set())
    read.clear()
    assert read_cohort(store, [bare], {"bare"}) == ({}, {})
    assert read_cohort(store, [bare], set()) == ({}, {})
    assert read == ["bare"]


def test_a_damaged_file_counts_as_none_and_is_made_anew(store: Store, ended: list[Run], read: list[str]) -> None:
    _, before = read_cohort(store, ended, set())
    for number, path in enumerate(sorted(store.lake.root.glob("rollup=segments/*"))):
        content = path.read_bytes()
        path.write_bytes([b"", b"PK", content[:100], content[:-30], b"x" * 300][number % 5])
    read.clear()
    _, after = read_cohort(store, ended, set())
    assert len(read) == len(ended)
    np.testing.assert_equal(
        [contents(segments) for segments in after.values()], [contents(segments) for segments in before.values()]
    )
    read.clear()
    read_cohort(store, ended, set())
    assert read == []


def test_where_nothing_can_be_written_every_run_is_read(
    store: Store, ended: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Path:
        raise PermissionError(13, "denied")

    monkeypatch.setattr("crosswind.models.explain.cohort.segment_cache.hidden_name", refuse)
    assert len(read_cohort(store, ended, set())[1]) == len(ended)
    assert list(store.lake.root.glob("rollup=segments/*")) == []
