import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import MetaData, Table, create_engine, inspect, text

from crosswind.data.catalog.catalog import Catalog, Ingested, Session
from crosswind.data.catalog.database import FIRST, HEAD, MIGRATIONS, open_database, sqlite_url
from crosswind.data.catalog.requests import REMEMBERED_NS
from crosswind.data.catalog.runs import RunFilter
from crosswind.data.catalog.tables import metadata
from crosswind.data.schema.errors import ConflictError, InvalidInputError, NotFoundError, UnavailableError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.request_key import RequestKey
from crosswind.data.schema.run import Rank, Run, RunState
from crosswind.data.schema.trial import Study, Trial, TrialRecord, TrialState
from crosswind.data.store.store import Store

RUN = Run("r1", "nanogpt", "lab", RunState.RUNNING, configuration={"batch": 8, "fused": True}, started_ns=100)
STUDY = Study("s1", "buckets", {"batch": {"type": "integer", "low": 1, "high": 8}}, "step_p50_seconds", "s", 7, 1)


def test_a_run_comes_back_as_it_was_stored(catalog: Catalog) -> None:
    run = replace(RUN, nodes=("a", "b"), command=("torchrun", "träin.py"), software={"torch": "2.13"}, tags={"k": "v"})
    with catalog.write() as session:
        session.runs.merge(run)
    with catalog.read() as session:
        assert session.runs.get("r1") == run


def test_a_command_from_before_secrets_were_taken_out_is_listed_without_them(catalog: Catalog) -> None:
    words = ("python", "train.py", "--api-key", "abcd1234efgh", "--token=hf_abcdefghijklmnopqrstu", "--epochs", "3")
    with catalog.write() as session:
        session.runs.merge(replace(RUN, command=words))
        stored = session._connection.execute(text("select command from runs")).scalar_one()
    assert "abcd1234efgh" in str(stored), "it is stored as it came"
    with catalog.read() as session:
        [listed], single = session.runs.find(limit=1), session.runs.get("r1")
    assert listed.command == single.command
    assert listed.command == ("python", "train.py", "--api-key", "[redacted]", "--token=[redacted]", "--epochs", "3")


def test_the_facts_of_a_run_are_those_of_all_its_records(catalog: Catalog) -> None:
    with catalog.write() as session:
        session.runs.merge(replace(RUN, facts=Facts(accelerator="A100", cuda="12.4")))
        session.runs.merge(replace(RUN, facts=Facts(accelerator="H100", accelerators_per_node=0)))
        session.runs.merge(RUN)
        assert session.runs.get("r1").facts == Facts(accelerator="H100", accelerators_per_node=0, cuda="12.4")


def test_a_late_start_record_does_not_undo_the_end(catalog: Catalog) -> None:
    ended = replace(RUN, state=RunState.FAILED, ended_ns=500, exit_code=1, started_ns=None)
    with catalog.write() as session:
        session.runs.merge(ended)
        session.runs.merge(RUN)
        merged = session.runs.get("r1")
    assert (merged.state, merged.started_ns, merged.ended_ns, merged.exit_code) == (RunState.FAILED, 100, 500, 1)


def test_merging_joins_tags_and_keeps_the_earliest_start(catalog: Catalog) -> None:
    with catalog.write() as session:
        session.runs.merge(replace(RUN, tags={"a": "1", "b": "1"}))
        session.runs.merge(replace(RUN, tags={"b": "2"}, started_ns=90, workload=""))
        merged = session.runs.get("r1")
    assert (merged.tags, merged.started_ns, merged.workload) == ({"a": "1", "b": "2"}, 90, "nanogpt")


def test_a_lost_run_that_ends_after_all_is_completed(catalog: Catalog) -> None:
    with catalog.write() as session:
        for state in (RunState.LOST, RunState.COMPLETED, RunState.LOST):
            session.runs.merge(replace(RUN, state=state))
        assert session.runs.get("r1").state is RunState.COMPLETED


def test_runs_that_are_put_replace_what_was_stored(catalog: Catalog) -> None:
    first = Run("r1", "toy", "lab", RunState.FAILED, 8, {"a": 1}, started_ns=1, ended_ns=9, tags={"t": "old"})
    again = Run("r1", "toy", "lab", RunState.COMPLETED, started_ns=2, ended_ns=5, facts=Facts(accelerator="H100"))
    with catalog.write() as session:
        session.runs.put_all([first, Run("r2", "toy", "lab", RunState.COMPLETED)])
        session.runs.put_all([first, again])
    with catalog.read() as session:
        assert session.runs.get("r1") == again
        assert session.runs.count() == 2


def test_ranks_merge_field_by_field(catalog: Catalog) -> None:
    with catalog.write() as session:
        session.ranks.merge(Rank("r1", 1, "b", 11, 5, clock_offset_ns=-3))
        session.ranks.merge(Rank("r1", 0, "a", 10, 4))
        session.ranks.merge(Rank("r1", 1, "b", 11, 5, ended_ns=9))
        assert session.ranks.of("r1") == [Rank("r1", 0, "a", 10, 4), Rank("r1", 1, "b", 11, 5, 9, -3)]


def test_two_processes_that_were_one_rank_are_reported(catalog: Catalog) -> None:
    with catalog.write() as session:
        session.runs.merge(RUN)
        session.ranks.merge(Rank("r1", 0, "a", 10, 4))
        assert session.runs.get("r1").tags == RUN.tags
        session.ranks.merge(Rank("r1", 0, "a", 12, 6))
        assert session.runs.get("r1").tags == {**RUN.tags, "rank0_written_twice": "by 10 and 12"}


@pytest.mark.parametrize("is_first", [False, True])
def test_two_processes_that_were_one_rank_are_reported_whenever_the_run_is(catalog: Catalog, is_first: bool) -> None:
    with catalog.write() as session:
        if is_first:
            session.runs.merge(RUN)
        session.ranks.merge(Rank("r1", 3, "a", 10, 4))
        session.ranks.merge(Rank("r1", 3, "b", 12, 6))
        session.ranks.merge(Rank("r2", 3, "b", 13, 6))
        if not is_first:
            assert session.runs.stored(["r1"]) == []
            session.runs.merge(RUN)
        session.runs.merge(replace(RUN, run_id="r2"))
    with catalog.read() as session:
        assert session.runs.get("r1").tags == {**RUN.tags, "rank3_written_twice": "by 10 and 12"}
        assert session.runs.get("r2").tags == RUN.tags
        assert [rank.pid for rank in session.ranks.of("r1")] == [12]


@pytest.mark.parametrize("other", [("b", 10, 4), ("a", 12, 4), ("a", 10, 6)])
def test_another_process_of_a_rank_inherits_nothing(catalog: Catalog, other: tuple[str, int, int]) -> None:
    with catalog.write() as session:
        session.ranks.merge(Rank("r1", 0, "a", 10, 4, ended_ns=9, clock_offset_ns=-3))
        session.ranks.merge(Rank("r1", 0, *other))
        assert session.ranks.of("r1") == [Rank("r1", 0, *other)]


def test_runs_are_found_newest_first_and_paged_without_gap_or_repeat(catalog: Catalog) -> None:
    starts = (5, 5, None, 9, 5, 1)
    with catalog.write() as session:
        for number, start in enumerate(starts):
            session.runs.merge(replace(RUN, run_id=f"r{number}", started_ns=start))
    seen: list[str] = []
    before = None
    with catalog.read() as session:
        while page := session.runs.find(before=before, limit=2):
            seen += [run.run_id for run in page]
            before = (page[-1].started_ns or 0, page[-1].run_id)
    assert seen == ["r3", "r4", "r1", "r0", "r5", "r2"]


def test_runs_are_filtered_by_every_field(catalog: Catalog) -> None:
    with catalog.write() as session:
        session.runs.merge(RUN)
        session.runs.merge(replace(RUN, run_id="r2", workload="bert", job_id="12_3", state=RunState.FAILED))
    wanted = RunFilter(workload="bert", system="lab", job_id="12_3", state=RunState.FAILED)
    with catalog.read() as session:
        assert [run.run_id for run in session.runs.find(wanted, limit=9)] == ["r2"]
        assert session.runs.find(replace(wanted, system="elsewhere"), limit=9) == []
        assert session.runs.count() == 2


def test_a_batch_is_known_once_its_session_ended_well(catalog: Catalog) -> None:
    with catalog.write() as session:
        session.add_batch("b1", "agent", row_count=10, skipped=2)
    with pytest.raises(NotFoundError), catalog.write() as session:
        session.runs.get(add_batch(session, "b2"))
    with catalog.read() as session:
        assert (session.has_batch("b1"), session.has_batch("b2")) == (True, False)
        assert session.ingested() == Ingested(batches=1, rows=10, skipped=2)


def add_batch(session: Session, batch_id: str) -> str:
    session.add_batch(batch_id, "agent", row_count=5, skipped=0)
    return "no such run"


def test_nothing_ingested_counts_as_zero(catalog: Catalog) -> None:
    with catalog.read() as session:
        assert session.ingested() == Ingested(0, 0, 0)


def test_a_study_is_found_by_id_and_by_name_and_keeps_its_name(catalog: Catalog) -> None:
    with catalog.write() as session:
        session.studies.add(STUDY)
        assert session.studies.get("s1") == session.studies.get("buckets") == session.studies.lock("buckets") == STUDY
        assert session.studies.all() == [STUDY]
        with pytest.raises(ConflictError, match="'buckets' is taken"):
            session.studies.add(replace(STUDY, study_id="s2"))
        with pytest.raises(NotFoundError, match="'s9'"):
            session.studies.lock("s9")


def test_a_trial_comes_back_with_its_lease(catalog: Catalog) -> None:
    trial = Trial({"batch": 4, "rate": 0.5, "kind": "x", "on": False}, TrialState.LEASED, None, "t1")
    with catalog.write() as session:
        session.studies.add(STUDY)
        session.leases.add(TrialRecord(trial, "s1", owner="job 5", lease_expires_ns=50))
        leased = session.leases.record("s1", "t1")
        done = replace(trial, state=TrialState.DONE, objective=0.25)
        session.leases.change(leased, replace(leased, trial=done, run_id="r1"))
        record = session.leases.record("s1", "t1")
        assert session.leases.records("s1") == [record]
    assert (leased.trial, record.trial) == (trial, done)
    assert (record.owner, record.lease_expires_ns, record.run_id, record.reason) == ("job 5", 50, "r1", None)


def test_an_id_is_of_its_study_whatever_others_are_called(catalog: Catalog) -> None:
    with catalog.write() as session:
        for study in (replace(STUDY, study_id="s0", name="s1"), STUDY, replace(STUDY, study_id="s2", name="s0")):
            session.studies.add(study)
        assert [session.studies.lock(study_id).study_id for study_id in ("s0", "s1", "s2")] == ["s0", "s1", "s2"]


def test_a_name_that_another_study_has_or_that_is_no_text_is_of_nobody(catalog: Catalog) -> None:
    with catalog.write() as session:
        session.studies.add(STUDY)
        session.studies.add(replace(STUDY, study_id="s2", name="n"))
    with pytest.raises(ConflictError, match="'n' is taken"), catalog.write() as session:
        session.studies.change(STUDY, replace(STUDY, name="n"))
    for name in ("x\udcff", "\0"):
        with pytest.raises(NotFoundError), catalog.read() as session:
            session.studies.get(name)


def test_while_one_holds_a_study_another_waits(catalog: Catalog) -> None:
    with catalog.write() as session:
        session.studies.add(STUDY)
    order: list[str] = []

    def hold() -> None:
        with catalog.write() as session:
            session.studies.lock("s1")
            order.append("second")

    with catalog.write() as session:
        session.studies.lock("s1")
        other = threading.Thread(target=hold)
        other.start()
        time.sleep(0.2)  # long enough for the other to get past the lock, were there none
        order.append("first")
    other.join(timeout=30)
    assert order == ["first", "second"]


def test_a_request_sent_again_is_answered_with_what_it_made(catalog: Catalog) -> None:
    request = RequestKey("k1", "abc")
    with catalog.write() as session:
        assert session.requests.claim(request, 10) is None
        session.requests.settle(request, ["t1", "t2"])
    with catalog.write() as session:
        assert session.requests.claim(request, 11) == ("t1", "t2")
        with pytest.raises(InvalidInputError, match="'k1' was used for another request"):
            session.requests.claim(RequestKey("k1", "other"), 12)


def test_requests_are_forgotten_after_a_day(catalog: Catalog) -> None:
    request = RequestKey("k1", "abc")
    with catalog.write() as session:
        session.requests.claim(request, 10)
        assert session.requests.claim(request, 11 + REMEMBERED_NS) is None


def test_the_same_request_at_the_same_time_is_done_once(catalog: Catalog) -> None:
    request = RequestKey("k1", "abc")
    claims: list[tuple[str, ...] | None] = []

    def send() -> None:
        with catalog.write() as session:
            claims.append(session.requests.claim(request, 10))
            time.sleep(0.02)
            session.requests.settle(request, ["t1"])

    in_threads(send, 6)
    assert sorted(claims, key=str) == [("t1",)] * 5 + [None]


def in_threads(work: Callable[[], None], count: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)


def test_the_migrations_make_the_tables_of_a_new_catalog(
    tmp_path: Path, postgres_url: str, lasting_postgres_url: str
) -> None:
    for new, migrated in (
        (sqlite_url(tmp_path / "new.sqlite"), sqlite_url(tmp_path / "migrated.sqlite")),
        (postgres_url, lasting_postgres_url),
    ):
        at_revision(migrated, "head", {})
        assert tables_of(migrated) == tables_of(new)


def tables_of(url: str) -> dict[str, list[list[str]]]:
    """Return the columns, keys, indexes and constraints of every table of a catalog; the order of columns is free."""
    engine = open_database(url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        looked, tables = inspect(connection), {}
        for name in looked.get_table_names():
            columns = [
                column | {"computed": "computed" in column} for column in looked.get_columns(name)
            ]  # no stored one is added in SQLite
            read = looked.get_indexes, looked.get_unique_constraints, looked.get_foreign_keys
            parts = [
                columns,
                *(get(name) for get in read),
                looked.get_check_constraints(name),
                [looked.get_pk_constraint(name)],
            ]
            tables[name] = [sorted(map(in_words, part)) for part in parts]
    engine.dispose()
    return tables


def in_words(part: Mapping[str, Any]) -> str:
    """Return what a database says of a column, an index or a constraint, with the text of its conditions."""
    options = {name: str(option) for name, option in part.get("dialect_options", {}).items()}
    return str({name: str(value) for name, value in sorted({**part, "dialect_options": options}.items())})


def at_revision(url: str, revision: str, rows: Mapping[str, list[dict[str, object]]]) -> None:
    """Make a database as an older version had it, with these rows by table."""
    engine = create_engine(url.replace("postgresql:", "postgresql+pg8000:"))
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
        for name, values in rows.items():
            connection.execute(Table(name, MetaData(), autoload_with=connection).insert(), values)
    engine.dispose()


def test_runs_of_before_get_their_place_in_the_list_and_their_cohort(tmp_path: Path, postgres_url: str) -> None:
    run = {name: value for name, value in asdict(RUN).items() if name not in ("user", "account", "shared")}
    run |= {"facts": {}}
    ended = {**run, "run_id": "r2", "state": "completed", "ended_ns": 300}
    other = {**ended, "run_id": "r3", "configuration": {"batch": 9}, "started_ns": None}
    run, ended, other = ({**one, "nodes": ["n1", "n2", "n2"]} for one in (run, ended, other))
    for url in (sqlite_url(tmp_path / "catalog.sqlite"), postgres_url):
        at_revision(url, "0013", {"runs": [run, ended, other]})
        catalog = Catalog(open_database(url))
        with catalog.read() as session:
            assert [run.run_id for run in session.runs.find(limit=9)] == ["r2", "r1", "r3"]
            assert [run.run_id for run in session.runs.find(RunFilter(id_end="3"), limit=9)] == ["r3"]
            assert session.runs.near(RUN, limit=9) == ["r2"]
            assert [run.run_id for run in session.runs.find(RunFilter(node="n2"), limit=9)] == ["r2", "r1", "r3"]
            assert session.verdicts.due_features(limit=9) == ["r3", "r2"]
        catalog.close()


def test_imports_of_before_keep_their_accelerator_and_nodes_as_facts(tmp_path: Path, postgres_url: str) -> None:
    of_before = {"accelerator": "NVIDIA H100 80GB HBM3", "node_count": "8", "seed": "7"}
    tags = {"a": of_before, "b": {"accelerator": "N/A", "node_count": "-1"}, "c": {"note": '"accelerator"'}, "d": {}}
    empty = {"configuration": {}, "nodes": [], "command": [], "software": {}}
    runs = [
        {"run_id": run_id, "workload": "w", "system": "lab", "state": "completed", **empty, "tags": own}
        for run_id, own in tags.items()
    ]
    for url in (sqlite_url(tmp_path / "catalog.sqlite"), postgres_url):
        at_revision(url, "0009", {"runs": runs})
        catalog = Catalog(open_database(url))
        with catalog.read() as session:
            stored = {run_id: session.runs.get(run_id) for run_id in tags}
        catalog.close()
        assert {run_id: run.facts.given for run_id, run in stored.items()} == {
            "a": {"accelerator": "NVIDIA H100 80GB HBM3", "node_count": 8},
            **{run_id: {} for run_id in "bcd"},
        }
        assert {run_id: run.tags for run_id, run in stored.items()} == tags
        assert {(run.user, run.account, run.shared) for run in stored.values()} == {(None, None, False)}


def test_trials_imported_before_do_not_count_for_the_budget(tmp_path: Path, postgres_url: str) -> None:
    trial = {"study_id": STUDY.study_id, "configuration": {"a": 1}, "state": "done", "objective": 1.0}
    trials: list[dict[str, object]] = [
        {**trial, "trial_id": "t1", "owner": None},
        {**trial, "trial_id": "t2", "owner": "alice"},
    ]
    for url in (sqlite_url(tmp_path / "catalog.sqlite"), postgres_url):
        at_revision(url, "0010", {"studies": [STUDY.as_json()], "trials": trials})
        catalog = Catalog(open_database(url))
        with catalog.read() as session:
            records = session.leases.records(STUDY.study_id)
            assert session.leases.count(STUDY.study_id) == (2, 1)
        catalog.close()
        assert [(record.trial_id, record.charged) for record in records] == [("t1", False), ("t2", True)]


def test_first_and_head_are_the_oldest_and_the_newest_migration() -> None:
    numbers = sorted(path.name[:4] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))
    assert (numbers[0], numbers[-1]) == (FIRST, HEAD)


def test_a_catalog_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "catalog.sqlite")
    engine = open_database(url)
    with engine.begin() as connection:
        connection.execute(text("update alembic_version set version_num = '9999'"))
    engine.dispose()
    with pytest.raises(ConflictError, match="revision 9999, this version knows"):
        open_database(url)


@pytest.mark.parametrize("revision", ["0001", "0008", None])
def test_a_store_of_before_the_first_release_is_refused_by_name_and_stays_untouched(
    tmp_path: Path, revision: str | None
) -> None:
    with Store.open(tmp_path) as store, store.catalog.write() as session:
        session.runs.merge(RUN)
    statement = f"update alembic_version set version_num = '{revision}'" if revision else "drop table alembic_version"
    with closing(sqlite3.connect(tmp_path / "catalog.sqlite")) as connection:
        connection.execute(statement)
        connection.commit()
    before = content_of(tmp_path)
    shown = f"revision {revision}" if revision else "no revision"
    refusal = rf"{tmp_path}/catalog\.sqlite .*\({shown}\).*CROSSWIND_HOME"
    with pytest.raises(ConflictError, match=refusal):
        Store.open(tmp_path)
    assert content_of(tmp_path) == before


def content_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("revision", ["0008", None])
def test_a_postgresql_catalog_of_before_the_first_release_is_refused(postgres_url: str, revision: str | None) -> None:
    engine = open_database(postgres_url)
    tables = inspect(engine).get_table_names()
    with engine.begin() as connection:
        connection.execute(text("delete from alembic_version"))
        if revision:
            connection.execute(text("insert into alembic_version values (:revision)"), {"revision": revision})
    with pytest.raises(ConflictError, match=f"{engine.url.database}.* was made before the first release"):
        open_database(postgres_url)
    assert inspect(engine).get_table_names() == tables
    engine.dispose()


@pytest.mark.parametrize("url", ["nonsense", "mysql://localhost/x", "sqlite+nosuch:///x"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInputError, match="expected"):
        open_database(url)


def test_a_database_that_does_not_answer_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="does not open"):
        open_database(sqlite_url(tmp_path / "no" / "such" / "folder.sqlite"))
