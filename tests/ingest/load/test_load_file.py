"""Somebody else's files into the store: exactly once, also when they grow or break."""

import gzip
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswind.data.catalog.catalog import Session
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.errors import MalformedError, UnavailableError
from crosswind.data.schema.metric import Column, Kind, MetricSet
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.trial import History, Study, Trial, TrialState
from crosswind.data.store.store import Store
from crosswind.ingest.load import load_file as module
from crosswind.ingest.load.load import Loaded
from crosswind.ingest.load.load_file import Named, load_file
from crosswind.ingest.reader.lines import blocks, lines_of
from crosswind.ingest.reader.reader import Context, Report
from crosswind.ingest.readers.slurm.sacct import SacctReader
from crosswind.ingest.readers.trackers.lightning_csv import LightningCsvReader

SACCT = "JobID|JobName|State|Start|End\n12|train|COMPLETED|2026-01-02T03:04:05|2026-01-02T03:05:05\n"
HEAT = MetricSet(
    "heat",
    "readings",
    (Column("ts_ns", "time", Kind.KEY), Column("node", "node", Kind.KEY, "string"), Column("value", "reading")),
)
CONTEXT = Context("lab")


class HeatReader:
    """Lines `seconds node value`; a first line `run` is a run."""

    name = "heat"
    description = "readings for these tests"

    def recognises(self, path: Path, head: bytes) -> bool:
        return True

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Any]:
        for block in blocks(path, report):
            words = [text.split() for _, text in lines_of(block)]
            yield from (Run(word[1], "toy", context.system, RunState.COMPLETED) for word in words if word[0] == "run")
            rows = [word for word in words if word[0] != "run"]
            report.read += len(rows)
            yield to_table(
                HEAT,
                {
                    "ts_ns": [int(word[0]) * 10**9 for word in rows],
                    "node": [word[1] for word in rows],
                    "value": [int(word[2]) for word in rows],
                },
            )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store") as opened:
        yield opened


def load(store: Store, path: Path, reader: Any = None, context: Context = CONTEXT) -> Loaded:
    loaded = Loaded()
    load_file(store, path, reader or HeatReader(), loaded, context=context)
    return loaded


def heat(store: Store) -> list[tuple[int, str, int]]:
    if "heat" not in store.lake.sets():
        return []
    frame = store.lake.frame("select ts_ns // 1000000000 as s, node, value from heat order by all")
    return [tuple(row) for row in frame.itertuples(index=False)]


def test_the_same_file_again_changes_nothing(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT)
    first, second = load(store, path, SacctReader()), load(store, path, SacctReader())
    assert (first.batches, first.duplicates, first.jobs) == (1, 0, 1)
    assert (second.batches, second.duplicates, second.jobs) == (0, 1, 0)
    assert second.reports[0].notes == ["was ingested before: nothing changed"]
    assert [job.name for job in store.jobs.all()] == ["train"]


def test_the_same_file_of_another_system_is_another(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT)
    load(store, path, SacctReader())
    load(store, path, SacctReader(), Context("elsewhere"))
    assert sorted(job.system for job in store.jobs.all()) == ["elsewhere", "lab"]


def test_a_file_that_breaks_half_way_leaves_nothing_behind(store: Store, tmp_path: Path) -> None:
    class Breaking(HeatReader):
        def read(self, path: Path, report: Report, context: Context) -> Iterator[Any]:
            yield from super().read(path, report, context)
            raise MalformedError("line 3: half a line")

    path = tmp_path / "heat.txt"
    path.write_text("run r1\n1 n1 5\n")
    with pytest.raises(MalformedError, match="line 3"):
        load(store, path, Breaking())
    assert heat(store) == []
    assert not [file for file in store.home.rglob("*heat*") if file.is_file()]
    with store.catalog.read() as session:
        assert session.runs.count() == 0
        assert session.ingested().batches == 0


def test_a_file_that_grew_gives_only_what_is_new(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "heat.txt"
    path.write_text("1 n1 5\n2 n1 6\n3 n1 7")  # its last line is still being written
    assert load(store, path).rows == 2
    path.write_text("1 n1 5\n2 n1 6\n3 n1 77\n4 n1 8\n")
    grown = load(store, path)
    assert grown.rows == 2
    assert grown.reports[0].notes == ["was ingested before up to byte 14: rows from there on are new"]
    assert heat(store) == [(1, "n1", 5), (2, "n1", 6), (3, "n1", 77), (4, "n1", 8)]
    path.write_text("9 n1 9\n")  # somebody began it again
    assert load(store, path).rows == 1
    assert len(heat(store)) == 5


def test_a_load_that_was_killed_before_it_was_noted_is_done_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "heat.txt"
    path.write_text("1 n1 5\n")
    with monkeypatch.context() as patched:
        patched.setattr(Session, "add_batch", lambda *_, **__: 1 / 0)  # between publishing and noting
        with pytest.raises(ZeroDivisionError):
            load(store, path)
    assert len(heat(store)) == 1
    path.write_text("1 n1 5\n2 n1 6\n")
    load(store, path)
    assert heat(store) == [(1, "n1", 5), (2, "n1", 6)]


def test_rows_given_twice_are_kept_once(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "heat.txt"
    path.write_text("1 n1 5\n2 n1 6\n1 n1 5\n1 n2 5\n")
    loaded = load(store, path)
    assert loaded.rows == 3
    assert loaded.reports[0].notes == ["1 rows of heat were repeated: one of each was kept"]
    assert heat(store) == [(1, "n1", 5), (1, "n2", 5), (2, "n1", 6)]


def test_rows_of_times_that_have_not_been_are_left_out_and_reported(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "heat.txt"
    path.write_text("-5 n1 5\n1 n1 5\n4102444800 n1 6\n")
    loaded = load(store, path)
    assert heat(store) == [(1, "n1", 5)]
    assert (loaded.rows, loaded.reports[0].skipped) == (1, 1)
    assert "2 rows of heat from before 1970 or from the future, such as 1969-12-31T23:59:55" in (
        loaded.reports[0].quoted[0].reason
    )


@pytest.mark.parametrize(("bound", "most"), [("CELLS_MAX", 10), ("BYTES_MAX", 100)])
def test_a_large_file_becomes_several_parts(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    monkeypatch.setattr(module, bound, most)
    monkeypatch.setattr("crosswind.ingest.reader.lines.BLOCK_BYTES", 50)
    path = tmp_path / "heat.txt"
    path.write_text("".join(f"{number} n1 {number}\n" for number in range(1, 101)))
    assert load(store, path).rows == 100
    assert len(list(store.home.rglob("part-*.parquet"))) > 3
    assert [value for _, _, value in heat(store)] == list(range(1, 101))


def test_a_search_grows_with_its_trials(store: Store, tmp_path: Path) -> None:
    class HistoryReader(HeatReader):
        def read(self, path: Path, report: Report, context: Context) -> Iterator[Any]:
            study = Study("s1", "search", {}, "run_seconds", "s", 0, 1)
            values = path.read_text().split()
            report.read = len(values)
            yield History(
                study, tuple(Trial({"x": n}, TrialState.DONE, float(v), f"t{n}") for n, v in enumerate(values))
            )

    path = tmp_path / "search.txt"
    path.write_text("3\n")
    assert load(store, path, HistoryReader()).trials == 1
    path.write_text("3\n4\n")
    load(store, path, HistoryReader())
    with store.catalog.read() as session:
        assert [record.trial.objective for record in session.leases.records("s1")] == [3.0, 4.0]


def test_a_thing_that_is_written_anew_with_more_in_it_gives_only_that(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "database"
    path.write_text("5 n1 5\n")
    load(store, path)
    path.write_text("1 n1 1\n5 n1 5\n9 n1 9\n")  # no beginning of it stood there before
    assert load(store, path).rows == 2
    assert [value for _, _, value in heat(store)] == [1, 5, 9]


def test_a_folder_is_one_thing(store: Store, tmp_path: Path) -> None:
    class Folders(HeatReader):
        def read(self, path: Path, report: Report, context: Context) -> Iterator[Any]:
            yield from super().read(path / "heat.txt", report, context)

    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "heat.txt").write_text("1 n1 5\n")
    assert load(store, folder, Folders()).rows == 1
    assert load(store, folder, Folders()).duplicates == 1


def in_a_thread(store: Store, path: Path, reader: Any) -> tuple[threading.Thread, list[Loaded]]:
    loaded: list[Loaded] = []
    thread = threading.Thread(target=lambda: loaded.append(load(store, path, reader)))
    thread.start()
    return thread, loaded


class Held(HeatReader):
    """Has read all of the file, and goes on when a test lets it."""

    def __init__(self) -> None:
        self.has_read, self.may_go_on = threading.Event(), threading.Event()

    def read(self, path: Path, report: Report, context: Context) -> Iterator[Any]:
        yield from list(super().read(path, report, context))
        self.has_read.set()
        assert self.may_go_on.wait(30)


def test_a_growing_file_that_two_ingest_at_once_is_stored_once(store: Store, tmp_path: Path) -> None:
    path, slow = tmp_path / "heat.txt", Held()
    path.write_text("1 n1 5\n2 n1 6\n")
    first, _ = in_a_thread(store, path, slow)
    assert slow.has_read.wait(30)
    path.write_text("1 n1 5\n2 n1 6\n3 n1 7\n")
    second, loaded = in_a_thread(store, path, HeatReader())
    second.join(0.3)
    assert second.is_alive()  # waits for the first one
    slow.may_go_on.set()
    first.join(30)
    second.join(30)
    assert [value for _, _, value in heat(store)] == [5, 6, 7]
    assert loaded[0].rows == 1


def test_who_waits_too_long_for_somebody_else_says_so(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.05)
    path, slow = tmp_path / "heat.txt", Held()
    path.write_text("1 n1 5\n")
    first, _ = in_a_thread(store, path, slow)
    assert slow.has_read.wait(30)
    with pytest.raises(UnavailableError, match=r"heat\.txt: somebody else is ingesting it"):
        load(store, path)
    slow.may_go_on.set()
    first.join(30)
    assert heat(store) == [(1, "n1", 5)]


def test_rows_that_nobody_noted_stay_until_the_file_is_read_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(HeatReader):
        def read(self, path: Path, report: Report, context: Context) -> Iterator[Any]:
            raise KeyboardInterrupt

    path = tmp_path / "heat.txt"
    path.write_text("1 n1 5\n2 n1 6\n")
    with monkeypatch.context() as patched:
        patched.setattr(Session, "add_batch", lambda *_, **__: 1 / 0)  # between publishing and noting
        with pytest.raises(ZeroDivisionError):
            load(store, path)
    with pytest.raises(KeyboardInterrupt):
        load(store, path, Interrupted())
    assert len(heat(store)) == 2
    assert load(store, path).rows == 2
    assert heat(store) == [(1, "n1", 5), (2, "n1", 6)]


def test_a_copy_of_a_file_somewhere_else_gives_only_what_it_has_more(store: Store, tmp_path: Path) -> None:
    path, copy = tmp_path / "heat.txt", tmp_path / "copy.txt.gz"
    path.write_text("1 n1 5\n2 n1 6\n")
    load(store, path)
    copy.write_bytes(gzip.compress(b"1 n1 5\n2 n1 6\n3 n1 7\n"))
    loaded = load(store, copy)
    assert loaded.rows == 1
    assert loaded.reports[0].notes == ["2 rows of heat were stored before: left out"]
    assert heat(store) == [(1, "n1", 5), (2, "n1", 6), (3, "n1", 7)]


def test_another_file_that_says_something_else_of_the_same_keys_is_kept(store: Store, tmp_path: Path) -> None:
    for name, text in (("one.txt", "1 n1 5\n"), ("two.txt", "1 n1 6\n")):  # two nodes, say, that name themselves alike
        (tmp_path / name).write_text(text)
        load(store, tmp_path / name)
    assert heat(store) == [(1, "n1", 5), (1, "n1", 6)]


def test_a_copy_is_found_among_parts_that_had_fewer_columns(store: Store, tmp_path: Path) -> None:
    class Wider(HeatReader):
        def read(self, path: Path, report: Report, context: Context) -> Iterator[Any]:
            wide = MetricSet("heat", "readings", (*HEAT.columns, Column("floor", "its floor")))
            for table in super().read(path, report, context):
                yield to_table(wide, {**table.to_pydict(), "floor": [None, 4][: len(table)]})

    path = tmp_path / "heat.txt"
    path.write_text("1 n1 5\n2 n1 6\n")
    load(store, path)
    (tmp_path / "copy.txt").write_text("1 n1 5\n2 n1 6\n\n")
    assert load(store, tmp_path / "copy.txt", Wider()).rows == 1


def test_a_row_repeated_where_the_file_grew_is_kept_once(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "heat.txt"
    path.write_text("1 n1 5\n2 n1 6\n")
    load(store, path)
    path.write_text("1 n1 5\n2 n1 6\n2 n1 6\n3 n1 7\n")
    assert load(store, path).rows == 1
    assert heat(store) == [(1, "n1", 5), (2, "n1", 6), (3, "n1", 7)]


def test_a_file_is_known_by_the_name_that_it_is_given(store: Store, tmp_path: Path) -> None:
    loaded, name = Loaded(), "https://lab.example/heat.txt"
    for number, text in enumerate(("1 n1 5\n", "1 n1 5\n2 n1 6\n")):
        path = tmp_path / str(number) / "heat.txt"
        path.parent.mkdir()
        path.write_text(text)
        load_file(store, Named(path, name), HeatReader(), loaded, context=CONTEXT)
    assert [report.path for report in loaded.reports] == [name, name]
    assert loaded.reports[1].notes == ["was ingested before up to byte 7: rows from there on are new"]
    assert len(heat(store)) == 2


def test_values_timed_by_their_file_are_known_by_their_steps(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,loss\n1,3.0\n2,2.0\n")
    os.utime(path, (1_790_000_000, 1_790_000_000))
    assert load(store, path, LightningCsvReader()).rows == 2
    path.write_text("loss,step,accuracy\n3.0,1,\n2.0,2,\n1.0,3,0.5\n")  # rewritten, with one column more
    os.utime(path, (1_790_000_060, 1_790_000_060))
    assert load(store, path, LightningCsvReader()).rows == 2
    steps = store.lake.frame("select step, name, value from progress order by all")
    assert [tuple(row) for row in steps.itertuples(index=False)] == [
        (1, "loss", 3.0), (2, "loss", 2.0), (3, "accuracy", 0.5), (3, "loss", 1.0),
    ]  # fmt: skip


def accounts(store: Store) -> list[tuple[str, str]]:
    frame = store.lake.frame("select job_id, state from job order by ts_ns")
    return [tuple(row) for row in frame.itertuples(index=False)]


def test_a_job_file_that_grew_gives_only_what_is_new_of_jobs(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(f"{SACCT}13|train|RUNNING|2026-01-02T03:04:05|Unknown\n")
    assert load(store, path, SacctReader()).jobs == 2
    with path.open("a") as file:
        file.write("14|train|RUNNING|2026-01-02T03:04:05|Unknown\n")
    assert load(store, path, SacctReader()).jobs == 1
    with path.open("a") as file:
        file.write("13|train|COMPLETED|2026-01-02T03:04:05|2026-01-02T03:05:05\n")
    assert load(store, path, SacctReader()).jobs == len(accounts(store)) - 3
    assert accounts(store)[:3] == [("12", "COMPLETED"), ("13", "RUNNING"), ("14", "RUNNING")]
    assert accounts(store)[-1] == ("13", "COMPLETED")
    job = store.jobs.get("lab", "13")
    assert job is not None
    assert job.state == "COMPLETED"


def test_jobs_that_nobody_noted_are_stored_again(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text(SACCT)
    with monkeypatch.context() as patched:
        patched.setattr(Session, "add_batch", lambda *_, **__: 1 / 0)  # between publishing and noting
        with pytest.raises(ZeroDivisionError):
            load(store, path, SacctReader())
    path.write_text(SACCT + "13|train|RUNNING|2026-01-02T03:04:05|Unknown\n")
    assert load(store, path, SacctReader()).jobs == 2
    assert accounts(store) == [("12", "COMPLETED"), ("13", "RUNNING")]


def test_a_job_list_written_anew_gives_a_state_that_a_job_had_before_again(store: Store, tmp_path: Path) -> None:
    path, head = tmp_path / "jobs.txt", SACCT.partition("\n")[0]
    for number, state in enumerate(("RUNNING", "SUSPENDED", "SUSPENDED", "RUNNING")):
        others = f"{20 + number}|other|PENDING|Unknown|Unknown\n"
        path.write_text(f"{head}\n{others}13|train|{state}|2026-01-02T03:04:05|Unknown\n")
        load(store, path, SacctReader())
    assert [state for job, state in accounts(store) if job == "13"] == ["RUNNING", "SUSPENDED", "RUNNING"]


def test_a_file_of_which_nothing_came_leaves_nothing(store: Store, tmp_path: Path) -> None:
    path, loaded = tmp_path / "heat.txt", Loaded()
    path.write_text("\n")
    assert not load_file(store, path, HeatReader(), loaded, context=CONTEXT)
    assert loaded.batches == 0
    path.write_text("\n1 n1 5\n")
    assert load_file(store, path, HeatReader(), loaded, context=CONTEXT)
    assert loaded.batches == 1
