"""Verdicts are due, hold and are voided in the same way in both databases."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.verdicts import StoredFeatures
from crosswind.data.schema.landing import Landing
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.run_verdict import RunVerdict

RUN = Run("r1", "toy", "lab", RunState.COMPLETED, 2, nodes=("a", "b"), started_ns=100, ended_ns=200)
FORM = "form"
DAY_NS = 86_400_000_000_000


def features_of(run_id: str, revision: int, content: bytes | None = b"x") -> StoredFeatures:
    return StoredFeatures(RunVerdict(run_id, steps=7, step_p50_seconds=0.5), revision, FORM, content, 190)


def make(catalog: Catalog, *run_ids: str, near: dict[str, list[str]] | None = None) -> None:
    """Store features of what is stored now, and a verdict each."""
    with catalog.write() as session:
        revisions = session.verdicts.revisions(run_ids)
        made = [features_of(run_id, revisions[run_id][0]) for run_id in run_ids]
        session.verdicts.put_features(made, {run_id: (near or {}).get(run_id, []) for run_id in run_ids})
        for run_id in run_ids:
            verdict = RunVerdict(run_id, verdict="slow", cause="swap", excess_seconds=1.5)
            session.verdicts.put_verdict(
                verdict, "{}", revision=session.verdicts.revisions([run_id])[run_id], allowed=1
            )


@pytest.fixture
def judged(catalog: Catalog) -> Catalog:
    """Two runs with verdicts."""
    with catalog.write() as session:
        session.runs.put_all([RUN, replace(RUN, run_id="r2", started_ns=300, ended_ns=400)])
    make(catalog, "r1", "r2")
    return catalog


def due(catalog: Catalog) -> list[str]:
    with catalog.read() as session:
        return session.verdicts.due_features(9) + session.verdicts.due_verdicts(9)


def test_a_run_is_due_once_it_has_ended(catalog: Catalog) -> None:
    with catalog.write() as session:
        session.runs.merge(replace(RUN, state=RunState.RUNNING, ended_ns=None))
        session.runs.merge(replace(RUN, run_id="r2", state=RunState.RUNNING, ended_ns=None))
    assert due(catalog) == []
    with catalog.write() as session:
        session.runs.merge(RUN)
        session.runs.lose("r2")
    assert due(catalog) == ["r2", "r1"]


def test_what_was_made_holds_and_is_read_back(judged: Catalog) -> None:
    assert due(judged) == []
    with judged.read() as session:
        assert session.verdicts.features(["r1", "r2", "r3"], FORM) == {"r1": b"x", "r2": b"x"}
        assert session.verdicts.with_features(["r1"], FORM) == {"r1"}
        assert session.verdicts.features(["r1"], "another") == session.verdicts.explanations(["r1"], "another") == {}
        assert session.verdicts.explanations(["r1"], FORM) == {"r1": "{}"}
        [row] = session.verdicts.get(["r1"]).values()
    assert (row.steps, row.verdict, row.cause, row.excess_seconds) == (7, "slow", "swap", 1.5)


def test_a_changed_record_or_rank_makes_a_run_due_again(judged: Catalog) -> None:
    with judged.write() as session:
        session.runs.merge(replace(RUN, tags={"note": "x"}))
        session.ranks.merge(Rank("r2", 0, "a", 7, 100))
    assert due(judged) == ["r2", "r1"]
    make(judged, "r1", "r2")
    with judged.write() as session:
        session.ranks.merge(Rank("r2", 0, "a", 7, 100, clock_offset_ns=5))  # says nothing of how long it took
    assert due(judged) == []


@pytest.mark.parametrize(
    ("landing", "expected"),
    [
        (Landing(0, 9, run_ids=frozenset({"r2", "r9"})), ["r2"]),
        (Landing(200, 299, nodes=frozenset({"b", "c"})), ["r1"]),
        (Landing(150, 350, nodes=frozenset({"a"})), ["r2", "r1"]),
        (Landing(150, 350, nodes=frozenset({"c"})), []),
        (Landing(201, 299, nodes=frozenset({"a"})), []),
    ],
)
def test_rows_that_land_make_those_due_that_they_are_of(judged: Catalog, landing: Landing, expected: list[str]) -> None:
    with judged.write() as session:
        session.add_batch("b", "test", row_count=1, skipped=0, landings=[landing])
    assert due(judged) == expected


def test_features_of_an_older_state_are_not_taken(judged: Catalog) -> None:
    with judged.write() as session:
        session.verdicts.want_again(["r1"])
        session.verdicts.put_features([features_of("r1", 1, b"old")], {"r1": []})
        assert session.verdicts.features(["r1"], FORM) == {}
    assert due(judged) == ["r1"]


@pytest.mark.parametrize("days", [6.9, 7.1, 40.0])
def test_samples_in_the_middle_of_a_run_make_it_due_however_long_it_took(catalog: Catalog, days: float) -> None:
    end_ns = round(days * DAY_NS)
    with catalog.write() as session:
        session.runs.put_all([replace(RUN, started_ns=0, ended_ns=end_ns), replace(RUN, run_id="r2", started_ns=5000)])
    make(catalog, "r1", "r2")
    with catalog.write() as session:
        session.verdicts.landed([Landing(1000, 2000, nodes=frozenset({"a"}))])
    assert due(catalog) == ["r1"]


def test_changes_of_the_cohort_count_up_to_what_is_allowed(judged: Catalog) -> None:
    for expected in ([], ["r1"]):
        with judged.write() as session:
            session.verdicts.want_again(["r2"])
        make(judged, "r2", near={"r2": ["r1"]})
        assert due(judged) == expected


def test_who_is_given_up_is_due_again_when_more_is_stored(judged: Catalog) -> None:
    with judged.write() as session:
        session.verdicts.want_again(["r1"])
        session.verdicts.give_up("r1")
    assert due(judged) == []
    with judged.write() as session:
        session.verdicts.landed([Landing(0, 1, run_ids=frozenset({"r1"}))])
    assert due(judged) == ["r1"]


def test_batches_and_features_of_the_same_runs_do_not_wait_for_each_other(catalog: Catalog) -> None:
    names = [f"r{number:02}" for number in range(30)]
    with catalog.write() as session:
        session.runs.put_all(replace(RUN, run_id=name) for name in names)

    def land(number: int) -> None:
        with catalog.write() as session:
            landing = Landing(150, 160, nodes=frozenset({"a"}))
            session.add_batch(f"b{number}", "test", row_count=1, skipped=0, landings=[landing])

    def compute(number: int) -> None:
        some = names[::-1] if number % 2 else names[number:] + names[:number]
        with catalog.write() as session:
            revisions = session.verdicts.revisions(some)
            made = [features_of(name, revisions[name][0]) for name in some]
            session.verdicts.put_features(made, dict.fromkeys(some, names))

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(task, number) for number in range(8) for task in (land, compute)]:
            future.result()
    make(catalog, *names)
    assert due(catalog) == []


def test_whether_runs_have_steps_is_known_without_reading_them(judged: Catalog) -> None:
    with judged.write() as session:
        session.runs.put_all([replace(RUN, run_id="r3")])
    with judged.read() as session:
        assert session.verdicts.is_any_timed(["r1", "r3"]) is True
        assert session.verdicts.is_any_timed(["r3"]) is None
