"""The row rule in the catalog, in both databases: each question is answered from the rows that may be seen."""

from dataclasses import replace

import pytest
from sqlalchemy import select, text

from crosswind.data.catalog import tables
from crosswind.data.catalog.catalog import Catalog
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.catalog.seen import newest_seen
from crosswind.data.schema.access import ALL_ROWS, Principal, PrincipalKind, Role, RowRule, login_name
from crosswind.data.schema.answers.studies import SourceLeftOut, StudySource, StudySources
from crosswind.data.schema.errors import ConflictError, ForbiddenError, NotFoundError
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.trial import Study, Trial, TrialRecord

RUN = Run("r", "w", "lab", RunState.COMPLETED, world_size=1, started_ns=1, ended_ns=2)
ANN = RowRule(users=frozenset({"ann"}))
STUDY = Study("s", "search", {"batch": {"kind": "int", "low": 1, "high": 8}}, "step_p50_seconds", "s", 7, 1)


def run(run_id: str, **facts: object) -> Run:
    return replace(RUN, run_id=run_id, **facts)  # type: ignore[arg-type]


@pytest.fixture
def filled(catalog: Catalog) -> Catalog:
    """Runs of ann, bob and nobody: one each; one of bob's that he shares, one of his in an account, one of a job."""
    with catalog.write() as session:
        for number, (run_id, facts) in enumerate(
            {
                "ann": {"user": "ann", "nodes": ("n-ann",), "workload": "of-ann"},
                "bob": {"user": "bob", "nodes": ("n-bob",), "workload": "of-bob", "system": "away"},
                "nobody": {},
                "shared": {"user": "bob", "shared": True},
                "account": {"user": "bob", "account": "chem"},
                "job": {"user": "bob", "job_id": "7"},
            }.items()
        ):
            session.runs.merge(run(run_id, started_ns=100 + number, ended_ns=200 + number, **facts))
            session.ranks.merge(Rank(run_id, 0, f"rank-{run_id}", 1, 1))
        session.runs.merge(run("job-elsewhere", user="bob", job_id="7", system="away"))
    return catalog


@pytest.mark.parametrize(
    ("rule", "seen"),
    [
        (RowRule(), ["shared"]),
        (ANN, ["shared", "ann"]),
        (RowRule(accounts=frozenset({"chem"})), ["account", "shared"]),
        (RowRule(jobs=frozenset({("lab", "7")})), ["job", "shared"]),
        (RowRule(users=frozenset({"ann"}), accounts=frozenset({"chem"})), ["account", "shared", "ann"]),
        (ALL_ROWS, ["job", "account", "shared", "nobody", "bob", "ann", "job-elsewhere"]),
    ],
)
def test_runs_are_listed_newest_first_as_far_as_they_may_be_seen(
    filled: Catalog, rule: RowRule, seen: list[str]
) -> None:
    with filled.seen_by(rule).read() as session:
        assert [run.run_id for run in session.runs.find(limit=100)] == seen
        assert [run.run_id for run in session.runs.outlines(RunFilter(), limit=100)] == seen[::-1]
        assert [run_id for run_id, *_ in session.runs.placed(RunFilter(), limit=100)] == seen[::-1]
        assert session.runs.count() == session.runs.stand(RunFilter())[0] == len(seen)
        lab = RunFilter(system="lab", since_ns=0)
        assert session.runs.count(lab) == session.runs.stand(lab)[0] == len(session.runs.find(lab, limit=100))
        first = session.runs.find(limit=1)[0]
        after = session.runs.find(before=(first.started_ns or 0, first.run_id), limit=100)
        assert [run.run_id for run in after] == seen[1:]


def test_no_question_about_runs_is_answered_from_others(filled: Catalog) -> None:
    with filled.seen_by(ANN).read() as session:
        runs = session.runs
        assert runs.stored(["bob", "ann", "none"]) == ["ann"]
        assert runs.workloads() == {"w", "of-ann"}
        assert runs.nodes() == {"n-ann", "rank-ann", "rank-shared"}
        assert session.ranks.of("bob") == []
        assert [rank.node for rank in session.ranks.of("ann")] == ["rank-ann"]
        assert session.ranks.nodes_of(["ann", "bob"])[0] == ["ann"]
        assert runs.usual_system(RunFilter(workload="of-bob")) is None
        assert runs.counts_by_job(["7"]) == {}
        assert runs.systems_of_job("7") == set()
        assert runs.jobs(limit=9) == []
        assert sum(count for _, count, _ in runs.cohorts()) == 2
        with pytest.raises(NotFoundError, match="run 'bob' is not in the catalog"):
            runs.get("bob")
    with filled.seen_by(RowRule(users=frozenset({"bob"}))).read() as session:
        assert session.runs.systems_of_job("7") == {"lab", "away"}
        assert session.runs.counts_by_job(["7"]) == {("lab", "7"): 1, ("away", "7"): 1}


def test_what_is_shared_may_be_read_and_not_changed(filled: Catalog) -> None:
    with filled.seen_by(ANN).write() as session:
        for change in (lambda: session.runs.share("shared", shared=False), lambda: session.runs.remove("shared")):
            with pytest.raises(ForbiddenError, match="run 'shared' is another user's"):
                change()
        assert session.runs.of_others({"ann", "shared", "bob", "nobody", "new"}) == {"shared", "bob", "nobody"}
        assert session.runs.share("ann", shared=True).shared
    with filled.write() as session:
        session.runs.merge(run("ann", user="ann"))
        assert session.runs.get("ann").shared, "a later record of the run does not end it"
        session.runs.put_all([run("ann", user="ann")])
        assert session.runs.get("ann").shared


def test_a_run_that_is_removed_leaves_its_trials_their_objective(filled: Catalog) -> None:
    with filled.write() as session:
        session.studies.add(STUDY)
        session.leases.add(TrialRecord(Trial({"batch": 1}, trial_id="t1"), "s", run_id="ann"))
        session.runs.remove("ann")
        assert session.leases.record("s", "t1").run_id is None
        assert session.runs.stored(["ann"]) == []
        assert session.ranks.of("ann") == []


def test_studies_belong_to_whoever_makes_them(catalog: Catalog) -> None:
    bob = RowRule(users=frozenset({"bob"}), accounts=frozenset({"chem"}))
    for rule, name in ((ANN, "a"), (bob, "b"), (ALL_ROWS, "c")):
        with catalog.seen_by(rule).write() as session:
            session.studies.add(replace(STUDY, study_id=name, name=f"search {name}"))
    with catalog.read() as session:
        owners = [session.studies.ownership(name).owner for name in "abc"]
    assert owners == ["ann", "bob", login_name()]
    with catalog.seen_by(ANN).read() as session:
        assert [study.study_id for study in session.studies.all()] == ["a"]
        for name in ("b", "search b"):
            with pytest.raises(NotFoundError, match="is not in the catalog"):
                session.studies.get(name)
    with catalog.seen_by(RowRule(accounts=frozenset({"chem"}))).read() as session:
        assert session.studies.get("search b").study_id == "b"
    with catalog.seen_by(ANN).write() as session, pytest.raises(ConflictError, match="name 'search b' is taken"):
        session.studies.add(replace(STUDY, study_id="x", name="search b"))


def test_a_shared_study_takes_trials_of_everybody_and_is_ended_by_its_owner(catalog: Catalog) -> None:
    bob = catalog.seen_by(RowRule(users=frozenset({"bob"})))
    with bob.write() as session:
        session.studies.add(STUDY)
        session.studies.share("search", shared=True)
    with catalog.seen_by(ANN).write() as session:
        assert session.studies.lock("search").study_id == "s"
        with pytest.raises(ForbiddenError, match="study 'search' is another user's"):
            session.studies.lock_own("search")
    with bob.write() as session:
        session.studies.share("s", shared=False)
    with catalog.seen_by(ANN).read() as session:
        assert session.studies.counts() == (0, 0)
        assert session.studies.all() == []


def test_the_sources_of_a_study_name_no_study_that_may_not_be_seen(catalog: Catalog) -> None:
    with catalog.seen_by(RowRule(users=frozenset({"bob"}))).write() as session:
        session.studies.add(replace(STUDY, study_id="b", name="his"))
    used, left_out = StudySource("his", "near"), SourceLeftOut("runs of w", "none")
    with catalog.seen_by(ANN).write() as session:
        session.studies.add(STUDY)
        session.studies.keep_sources("s", StudySources((used, replace(used, name="mine")), (left_out,)))
        kept = session.studies.sources("s")
    assert kept is not None
    assert ([source.name for source in kept.used], kept.left_out, kept.others_left_out) == (["mine"], (left_out,), 1)


@pytest.mark.parametrize(
    ("rule", "index"),
    [
        (ANN, "ix_runs_user_listed_ns_run_id"),
        (RowRule(accounts=frozenset({"chem"})), "ix_runs_account_listed_ns_run_id"),
        (RowRule(jobs=frozenset({("lab", "7")})), "ix_runs_job_id_listed_ns_run_id"),
        (RowRule(), "ix_runs_shared"),
    ],
)
def test_an_index_serves_each_way_to_see_a_run(filled: Catalog, rule: RowRule, index: str) -> None:
    with filled.read() as session:
        connection = session._connection
        if connection.dialect.name == "postgresql":
            connection.execute(text("set enable_seqscan = off"))  # of seven rows nobody would use an index
        query = newest_seen(rule, select(tables.runs), [tables.runs.c.started_ns.desc()], 50)
        sql = query.compile(connection, compile_kwargs={"literal_binds": True})
        explain = "explain query plan" if connection.dialect.name == "sqlite" else "explain"
        plan = " ".join(" ".join(map(str, row)) for row in connection.exec_driver_sql(f"{explain} {sql}"))
    assert index in plan


@pytest.mark.parametrize(
    ("principal", "sees_all", "changes_all", "writes_all"),
    [
        (Principal(PrincipalKind.PERSON, "ann", user="ann"), False, False, False),
        (Principal(PrincipalKind.PERSON, "sue", Role.SUPPORT, user="sue"), True, False, False),
        (Principal(PrincipalKind.PERSON, "root", Role.ADMIN, user="root"), True, True, True),
        (Principal(PrincipalKind.JOB, "7", user="ann", system="lab"), False, False, False),
        (Principal(PrincipalKind.AGENT, "n1"), False, False, True),
        (Principal(PrincipalKind.SERVICE, "ldms"), False, False, True),
        (Principal(PrincipalKind.SERVICE, "of ann", user="ann"), False, False, False),
    ],
)
def test_who_sees_and_who_changes(principal: Principal, sees_all: bool, changes_all: bool, writes_all: bool) -> None:
    rule = principal.row_rule
    assert (rule.sees_all, rule.changes_all, principal.write_rule.changes_all) == (sees_all, changes_all, writes_all)
