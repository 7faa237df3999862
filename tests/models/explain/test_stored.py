"""Stored features and explanations: the same as computed anew, for as long as nothing changes that matters."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import event
from tests.models.explain.cohort.test_read import NS, stored_runs

from crosswind.data.lake.compaction import compact
from crosswind.data.lake.lake import to_table
from crosswind.data.lake.landings import landings_of
from crosswind.data.schema.answers.explanations import Verdict
from crosswind.data.schema.metric import with_node_keys
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.features import all_runs
from crosswind.data.store.store import Store
from crosswind.ingest.collectors.memory import MEMORY
from crosswind.models.explain import upkeep
from crosswind.models.explain.cohort import peers
from crosswind.models.explain.explain import explain_run, explain_runs
from crosswind.models.explain.stored import FEW_RUNS, allowed_changes, stored_explanations
from crosswind.models.explain.upkeep import compute_due

Rows = Callable[..., pd.DataFrame]
BATCH = iter(range(1000))


@pytest.fixture
def ended(store: Store, step_rows: Rows) -> list[Run]:
    """Eight runs that have ended."""
    runs = [replace(run, ended_ns=(run.started_ns or 0) + 40 * NS) for run in stored_runs(store, step_rows)]
    with store.catalog.write() as session:
        for run in runs:
            session.runs.merge(run)
    return all_runs(store)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of runs whose rows are read, as it happens."""
    seen: list[str] = []
    real = peers.read_own_segments

    def noting(store: Store, runs: Sequence[Run], ranks: Sequence[Rank], spans: pd.DataFrame) -> object:
        seen.extend(run.run_id for run in runs)
        return real(store, runs, ranks, spans)

    monkeypatch.setattr(peers, "read_own_segments", noting)
    return seen


def land(store: Store, tables: Sequence[object]) -> None:
    """Store rows as every way in does: the rows, then a note of the batch."""
    name = f"batch-{next(BATCH)}"
    store.lake.append_all({f"{name}-{number}": table for number, table in enumerate(tables)})
    with store.catalog.write() as session:
        session.add_batch(name, "test", row_count=1, skipped=0, landings=landings_of(tables))


def samples_on(node: str, second: int) -> object:
    """Two samples of a node, two seconds apart."""
    times = [second * NS, (second + 2) * NS]
    keys = {"ts_ns": times, "mono_ns": times, "node": [node] * 2, "device": ["node"] * 2, "boot_id": ["b"] * 2}
    return to_table(with_node_keys(MEMORY), keys | {"swapped_in_pages_total": [0, 4]})


def step_of(run_id: str) -> object:
    rows = {"run_id": [run_id], "rank": [1], "step": [90], "ts_ns": [590 * NS], "duration_seconds": [NS]}
    return to_table(STEP, rows)


def due(store: Store) -> set[str]:
    with store.catalog.read() as session:
        return {*session.verdicts.due_features(99), *session.verdicts.due_verdicts(99)}


def test_what_is_stored_is_what_was_computed(store: Store, ended: list[Run], read: list[str]) -> None:
    computed = explain_runs(store, ended)
    assert sorted(read) == sorted(run.run_id for run in ended)
    read.clear()
    assert explain_runs(store, ended) == computed
    assert explain_run(store, "r3") == computed["r3"]
    assert read == []


def test_one_run_has_the_features_of_its_cohort_computed_once(store: Store, ended: list[Run], read: list[str]) -> None:
    explain_run(store, "r0")
    assert sorted(read) == sorted(run.run_id for run in ended)
    read.clear()
    explain_run(store, "r1")
    assert read == ["r1"]  # of itself every segment is needed, of its peers what is stored


@pytest.mark.parametrize(("size_bytes", "is_once"), [(50_000_000, True), (0, False)])
def test_in_the_background_short_runs_of_a_cohort_are_read_once(
    store: Store, ended: list[Run], read: list[str], monkeypatch: pytest.MonkeyPatch, size_bytes: int, is_once: bool
) -> None:
    with Store.open(Path(shutil.copytree(store.home, store.home.with_name("other")))) as other:
        computed = explain_runs(other, ended)
    monkeypatch.setattr(upkeep, "AT_ONCE", 1)
    monkeypatch.setattr(peers, "SHORT_AT_ONCE", 1)
    monkeypatch.setattr(peers, "WHOLE_BYTES", size_bytes)
    read.clear()
    compute_due(store, seconds=60)
    assert (len(read) == len(ended)) is is_once  # a long one is read for its features, and for its verdict
    assert set(read) == {run.run_id for run in ended}
    assert stored_explanations(store, list(computed)) == computed


@pytest.mark.parametrize(("short_seconds", "sizes"), [(20_000, [8]), (0, [3, 3, 2])])
def test_short_runs_are_read_together(
    store: Store, ended: list[Run], monkeypatch: pytest.MonkeyPatch, short_seconds: int, sizes: list[int]
) -> None:
    seen: list[int] = []
    real = peers.spans_of

    def noting(store: Store, runs: Sequence[Run]) -> pd.DataFrame:
        seen.append(len(runs))
        return real(store, runs)

    monkeypatch.setattr(peers, "spans_of", noting)
    monkeypatch.setattr(peers, "READ_AT_ONCE", 3)
    monkeypatch.setattr(peers, "SHORT_SECONDS", short_seconds)
    explain_run(store, "r0")
    assert seen == sizes


def test_verdict_cause_and_numbers_are_columns(store: Store, ended: list[Run]) -> None:
    explanation = explain_run(store, "r7")
    with store.catalog.read() as session:
        row = session.verdicts.get(["r7"])["r7"]
    assert (row.verdict, row.cause) == (explanation.verdict, explanation.cause)
    assert explanation.excess is not None
    assert row.excess_seconds == explanation.excess.value
    assert (row.excess_low_seconds, row.excess_high_seconds) == (explanation.excess.low, explanation.excess.high)
    assert (row.measured_seconds, row.expected_seconds) == (explanation.measured_seconds, explanation.expected_seconds)
    assert row.steps == 21
    assert row.step_p50_seconds is not None


def test_rows_of_a_run_or_of_its_nodes_meanwhile_make_it_due(store: Store, ended: list[Run], read: list[str]) -> None:
    compute_due(store, seconds=60)
    assert due(store) == set()
    land(store, [samples_on("elsewhere", 305), samples_on("n1", 2000), step_of("another")])
    assert due(store) == set()
    land(store, [samples_on("n1", 305)])
    assert due(store) == {"r3"}
    land(store, [step_of("r5")])
    with store.catalog.write() as session:
        session.ranks.merge(Rank("r6", 2, "n1", 8, 0))
    assert due(store) == {"r3", "r5", "r6"}
    read.clear()
    compute_due(store, seconds=60)
    assert {"r3", "r5", "r6"} <= set(read)
    assert due(store) == set()


def test_a_batch_of_others_and_compaction_forget_nothing(store: Store, ended: list[Run], read: list[str]) -> None:
    before = explain_runs(store, ended)
    read.clear()
    land(store, [step_of("another")])
    compact(store.lake, settle_seconds=-1)
    assert explain_runs(store, ended) == before
    assert read == []


def test_another_run_of_a_small_cohort_makes_its_verdicts_due(store: Store, ended: list[Run]) -> None:
    compute_due(store, seconds=60)
    with store.catalog.write() as session:
        session.runs.merge(replace(ended[0], run_id="r8", started_ns=900 * NS, ended_ns=940 * NS))
    explain_run(store, "r8")
    assert due(store) == {run.run_id for run in ended}
    compute_due(store, seconds=60)
    assert due(store) == set()


def test_a_large_cohort_may_change_by_a_tenth() -> None:
    assert [allowed_changes(runs) for runs in (0, FEW_RUNS - 1, FEW_RUNS, 200)] == [0, 0, 2, 20]


def test_changes_are_counted_up_to_what_a_verdict_allows(store: Store, ended: list[Run]) -> None:
    explanation = explain_run(store, "r0")
    with store.catalog.write() as session:
        session.verdicts.put_verdict(stored_row(store, "r0"), "{}", revision=revision(store, "r0"), allowed=1)
        session.verdicts._count({"r0": 1})
    assert "r0" not in due(store)
    with store.catalog.write() as session:
        session.verdicts._count({"r0": 1})
    assert "r0" in due(store)
    assert explain_run(store, "r0") == explanation


def stored_row(store: Store, run_id: str) -> object:
    with store.catalog.read() as session:
        return session.verdicts.get([run_id])[run_id]


def revision(store: Store, run_id: str) -> tuple[int, int]:
    with store.catalog.read() as session:
        return session.verdicts.revisions([run_id])[run_id]


def test_what_is_stored_meanwhile_is_not_covered_by_an_older_computation(store: Store, ended: list[Run]) -> None:
    explain_run(store, "r0")
    of_before = revision(store, "r0")
    land(store, [step_of("r0")])
    with store.catalog.write() as session:
        session.verdicts.put_verdict(stored_row(store, "r0"), "{}", revision=of_before, allowed=9)
    assert stored_explanations(store, ["r0"]) == {}
    assert "r0" in due(store)


def test_a_run_in_progress_is_read_every_time_and_is_nobodys_peer(
    store: Store, ended: list[Run], read: list[str]
) -> None:
    with store.catalog.write() as session:
        session.runs.merge(replace(ended[0], run_id="r8", state=RunState.RUNNING, ended_ns=None))
    for _ in range(2):
        read.clear()
        assert explain_run(store, "r8").verdict is Verdict.INSUFFICIENT_EVIDENCE
        assert "r8" in read
    assert explain_run(store, "r0").cohort_runs == len(ended) - 1


def test_peers_are_those_that_began_nearest(store: Store, ended: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "PEERS", 4)
    [cohort] = peers.cohorts_of(store, [ended[0]])
    assert [run.run_id for run in cohort.members] == ["r0", "r1", "r2", "r3", "r4"]
    [cohort] = peers.cohorts_of(store, [ended[5]])
    assert [run.run_id for run in cohort.members] == ["r3", "r4", "r5", "r6", "r7"]


def test_where_nothing_can_be_stored_explanations_are_computed(store: Store, ended: list[Run]) -> None:
    engine = store.catalog._engine
    engine.dispose()
    event.listen(engine, "connect", lambda connection, _: connection.execute("pragma query_only = on"))
    assert explain_run(store, "r0").steps > 0


def test_a_run_that_cannot_be_read_is_given_up_until_more_of_it_is_stored(store: Store, ended: list[Run]) -> None:
    [part] = store.lake.root.glob("set=step/date=*/part-*.parquet")
    content = part.read_bytes()
    part.write_bytes(content[:100] + b"x" * 100 + content[200:])
    assert compute_due(store, seconds=60) == len(ended)
    assert due(store) == set()
    part.write_bytes(content)
    land(store, [step_of("r0")])
    compute_due(store, seconds=60)
    assert set(stored_explanations(store, [run.run_id for run in ended])) == {run.run_id for run in ended}


def test_it_ends_between_two_pieces_of_work(store: Store, ended: list[Run], read: list[str]) -> None:
    compute_due(store, seconds=60, is_over=lambda: bool(read))
    assert due(store) == {run.run_id for run in ended}  # features were computed, and no verdict after that
    assert sorted(read) == sorted(run.run_id for run in ended)
