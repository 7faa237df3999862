"""Events in the catalog: written with what they announce, read in order, cut by the row rule, trimmed."""

import itertools
import time
from dataclasses import replace
from threading import Thread

import pytest

from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.live import notes
from crosswind.data.schema.access import ALL_ROWS, RowRule
from crosswind.data.schema.answers.events import Event, EventFilter, EventKind
from crosswind.data.schema.landing import Landing
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.run_verdict import RunVerdict
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState

NOW_NS = time.time_ns()
RUN = Run("r", "w", "lab", RunState.RUNNING, world_size=2, started_ns=NOW_NS, user="ann")
STUDY = Study("s", "search", {"batch": {"kind": "int", "low": 1, "high": 8}}, "step_p50_seconds", "s", 7, NOW_NS)
ANN = RowRule(users=frozenset({"ann"}))


def store_run(catalog: Catalog, run_id: str = "r", **facts: object) -> None:
    with catalog.write() as session:
        session.runs.merge(replace(RUN, run_id=run_id, **facts))  # type: ignore[arg-type]


def events(catalog: Catalog, after: int = 0, wanted: EventFilter | None = None) -> list[Event]:
    with catalog.read() as session:
        return list(session.events.after(after, wanted or EventFilter(), limit=1000).events)


def kinds(catalog: Catalog, after: int = 0, **wanted: object) -> list[str]:
    return [event.kind for event in events(catalog, after, EventFilter(**wanted))]  # type: ignore[arg-type]


def test_a_run_is_announced_when_it_comes_goes_on_and_ends(catalog: Catalog) -> None:
    with catalog.write() as session:
        landing = Landing(NOW_NS, NOW_NS, run_ids=frozenset({"r"}), steps={"r": 7})
        session.add_batch("b", "origin", row_count=1, skipped=2, landings=[landing])
        session.runs.merge(RUN)
    store_run(catalog, state=RunState.FAILED, ended_ns=NOW_NS + 2_000_000_000, exit_code=1)
    started, progress, gap, ended = events(catalog)
    assert (started.kind, started.workload, started.system) == (EventKind.RUN_STARTED, "w", "lab")
    assert (progress.kind, progress.details) == (EventKind.RUN_PROGRESS, {"step": 7})
    assert (gap.kind, gap.details) == (EventKind.DATA_GAP, {"origin": "origin", "refused_frames": 2})
    assert (ended.kind, ended.details) == (EventKind.RUN_ENDED, {"state": "failed", "exit_code": 1, "seconds": 2.0})


def test_a_record_that_says_nothing_new_announces_nothing(catalog: Catalog) -> None:
    store_run(catalog, state=RunState.COMPLETED, ended_ns=NOW_NS + 1)
    before = len(events(catalog))
    store_run(catalog, state=RunState.COMPLETED, ended_ns=NOW_NS + 1)
    assert len(events(catalog)) == before == 2


def test_a_lost_run_has_ended(catalog: Catalog) -> None:
    store_run(catalog)
    with catalog.write() as session:
        session.runs.lose("r")
    assert events(catalog)[-1].details["state"] == "lost"


def test_runs_of_long_ago_are_no_news(catalog: Catalog) -> None:
    store_run(catalog, started_ns=1, ended_ns=2, state=RunState.COMPLETED)
    assert events(catalog) == []


def test_what_is_not_stored_is_not_announced(catalog: Catalog) -> None:
    def fail() -> None:
        with catalog.write() as session:
            session.runs.merge(RUN)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert events(catalog) == []


def test_progress_is_announced_now_and_then_and_not_with_every_batch(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "PROGRESS_SECONDS", 0.2)
    store_run(catalog)
    for number in range(20):
        with catalog.write() as session:
            landing = Landing(NOW_NS, NOW_NS, run_ids=frozenset({"r"}), steps={"r": number})
            session.add_batch(f"b{number}", "o", row_count=1, skipped=0, landings=[landing])
        time.sleep(0.01)
    steps = [event.details["step"] for event in events(catalog, wanted=EventFilter(kinds=(EventKind.RUN_PROGRESS,)))]
    assert steps[0] == 0
    assert 2 <= len(steps) <= 12


def test_a_verdict_is_announced_when_it_is_another_one(catalog: Catalog) -> None:
    store_run(catalog, state=RunState.COMPLETED, ended_ns=NOW_NS + 1)
    with catalog.write() as session:
        [revision] = session.verdicts.revisions(["r"]).values()
    for verdict in ("slow", "slow", "usual"):
        with catalog.write() as session:
            session._connection.exec_driver_sql("update run_verdicts set made = wanted")
            judged = RunVerdict("r", verdict=verdict, cause="input", excess_seconds=1.5)
            session.verdicts.put_verdict(judged, "{}", revision=revision, allowed=1)
    judged_events = events(catalog, wanted=EventFilter(kinds=(EventKind.RUN_VERDICT,)))
    assert [(event.details["verdict"], event.details["excess_seconds"]) for event in judged_events] == [
        ("slow", 1.5),
        ("usual", 1.5),
    ]


def test_trials_of_a_study_are_announced_when_they_begin_and_end_and_not_at_heartbeats(catalog: Catalog) -> None:
    leased = TrialRecord(Trial({"batch": 1}, TrialState.LEASED, None, "t"), "s", owner="job", lease_expires_ns=5)
    done = replace(leased, trial=replace(leased.trial, state=TrialState.DONE, objective=0.5))
    with catalog.write() as session:
        session.studies.add(STUDY)
        session.leases.add(leased)
    with catalog.write() as session:
        session.leases.change(leased, replace(leased, lease_expires_ns=50))
    with catalog.write() as session:
        session.leases.change(leased, done)
    assert kinds(catalog, study_id="s") == ["study.created", "trial.started", "trial.ended"]
    assert events(catalog)[-1].details == {"state": "done", "objective": 0.5}


def test_filters_are_the_same_in_sql_and_in_python(catalog: Catalog) -> None:
    store_run(catalog, "r1")
    store_run(catalog, "r2", workload="other", system="away")
    with catalog.write() as session:
        session.studies.add(STUDY)
    every = events(catalog)
    values: dict[str, tuple[object, ...]] = {
        "run_id": (None, "r1"),
        "workload": (None, "w", "other"),
        "system": (None, "lab", "away"),
        "study_id": (None, "s"),
        "kinds": (None, (EventKind.RUN_STARTED,), (EventKind.STUDY_CREATED, EventKind.RESET)),
    }
    for chosen in itertools.product(*values.values()):
        wanted = EventFilter(**dict(zip(values, chosen, strict=True)))  # type: ignore[arg-type]
        assert events(catalog, wanted=wanted) == [event for event in every if wanted.takes(event)], wanted


RULES = [
    RowRule(users=users, accounts=accounts, jobs=jobs)
    for users in (frozenset(), frozenset({"ann"}), frozenset({"ann", "bob"}))
    for accounts in (frozenset(), frozenset({"chem"}))
    for jobs in (frozenset(), frozenset({("lab", "7")}))
]


def test_the_row_rule_is_the_same_in_sql_and_in_python(catalog: Catalog) -> None:
    owners = itertools.product((None, "ann", "bob"), (None, "chem"), (None, "7"), ("lab", "away"), (False, True))
    for number, (user, account, job, system, shared) in enumerate(owners):
        store_run(catalog, f"r{number}", user=user, account=account, job_id=job, system=system, shared=shared)
    with catalog.seen_by(ANN).write() as session:
        session.studies.add(STUDY)
    with catalog.write() as session:
        session.studies.add(replace(STUDY, study_id="s2", name="other"))
        session.add_batch("b", "o", row_count=1, skipped=1)
    with catalog.read() as session:
        stored = session.events.stored_after(0, limit=1000)
    assert len(stored) == 48 + 3
    for rule in [*RULES, ALL_ROWS]:
        seen = events(catalog.seen_by(rule))
        assert seen == [one.event for one in stored if one.may_be_seen(rule)], rule
    assert 0 < len(events(catalog.seen_by(ANN))) < len(stored)


def test_what_is_deleted_is_in_no_event(catalog: Catalog) -> None:
    store_run(catalog, "r1")
    store_run(catalog, "r2")
    with catalog.write() as session:
        session.runs.remove("r2")
    assert [event.run_id for event in events(catalog)] == ["r1"]
    with catalog.read() as session:
        assert session.events.newest() == 2
        assert session.events.after(2, limit=10).events == ()


def test_a_trimmed_past_is_a_reset_for_those_who_have_not_seen_it_all(catalog: Catalog) -> None:
    for number in range(10):
        store_run(catalog, f"r{number}")
    with catalog.write() as session:
        session.events.forget(time.time_ns(), kept_rows=4)
        session.events.forget(time.time_ns(), kept_rows=4)  # changes nothing
    assert kinds(catalog, 0) == ["reset", *["run.started"] * 4]
    assert kinds(catalog.seen_by(ANN), 3, kinds=(EventKind.DATA_GAP,)) == ["reset"]
    assert kinds(catalog, 6) == ["run.started"] * 4
    assert kinds(catalog, 8) == ["run.started"] * 2
    with catalog.write() as session:
        session.events.forget(time.time_ns() + 1, kept_days=0)
    assert kinds(catalog, 9) == ["reset"]
    assert kinds(catalog, 10) == []
    store_run(catalog, "new")
    assert [event.event_id for event in events(catalog, 10)] == [11]


def test_a_position_that_this_catalog_never_reached_is_a_reset(catalog: Catalog) -> None:
    store_run(catalog)
    with catalog.read() as session:
        part = session.events.after(100, limit=10)
    assert ([event.kind for event in part.events], part.position, part.is_last) == (["reset"], 1, True)


def test_somebody_who_sees_nothing_gets_through_in_bounded_steps(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("crosswind.data.catalog.live.events.LOOKED_AT", 3)
    for number in range(10):
        store_run(catalog, f"r{number}", user="bob")
    position, parts = 0, 0
    while True:
        with catalog.seen_by(ANN).read() as session:
            part = session.events.after(position, limit=100)
        assert part.events == ()
        position, parts = part.position, parts + 1
        if part.is_last:
            break
    assert (position, parts) == (10, 4)


def test_readers_in_the_order_of_ids_pass_nothing_over_while_several_write(catalog: Catalog) -> None:
    """Of ids that are given out before a commit, the later one may become visible first: the lock prevents it."""

    def write(name: str) -> None:
        for number in range(15):
            store_run(catalog, f"{name}{number}")

    writers = [Thread(target=write, args=(name,)) for name in "abcd"]
    for writer in writers:
        writer.start()
    seen: list[str | None] = []
    position = 0
    while any(writer.is_alive() for writer in writers) or not seen or position < 60:
        with catalog.read() as session:
            for one in session.events.stored_after(position, limit=100):
                seen.append(one.event.run_id)
                position = one.event.event_id
    for writer in writers:
        writer.join()
    assert sorted(seen) == sorted({f"{name}{number}" for name in "abcd" for number in range(15)})  # type: ignore[type-var]
