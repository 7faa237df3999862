"""Somebody else's files into the store: exactly once, also when they grow or break."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswind.data.catalog.catalog import Session
from crosswind.data.errors import MalformedError
from crosswind.data.lake import to_table
from crosswind.data.metric import Column, Kind, MetricSet
from crosswind.data.run import Run, RunState
from crosswind.data.store import Store
from crosswind.data.trial import History, Study, Trial, TrialState
from crosswind.ingest import load_file as module
from crosswind.ingest.load import Loaded
from crosswind.ingest.load_file import load_file
from crosswind.ingest.readers.lines import blocks, lines_of
from crosswind.ingest.readers.reader import Context, Report
from crosswind.ingest.readers.slurm.sacct import SacctReader

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
    assert not [each for each in store.home.rglob("*heat*") if each.is_file()]
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
    path.write_text("9 n1 9\n")  # somebody began it anew
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


def test_rows_told_twice_are_kept_once(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "heat.txt"
    path.write_text("1 n1 5\n2 n1 6\n1 n1 5\n1 n2 5\n")
    loaded = load(store, path)
    assert loaded.rows == 3
    assert loaded.reports[0].notes == ["1 rows of heat told twice: one of each was kept"]
    assert heat(store) == [(1, "n1", 5), (1, "n2", 5), (2, "n1", 6)]


def test_rows_of_times_that_have_not_been_are_left_out_and_told(store: Store, tmp_path: Path) -> None:
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
    monkeypatch.setattr("crosswind.ingest.readers.lines.BLOCK_BYTES", 50)
    path = tmp_path / "heat.txt"
    path.write_text("".join(f"{number} n1 {number}\n" for number in range(1, 101)))
    assert load(store, path).rows == 100
    assert len(list(store.home.rglob("part-*.parquet"))) > 3
    assert [value for _, _, value in heat(store)] == list(range(1, 101))


def test_a_search_grows_with_its_trials(store: Store, tmp_path: Path) -> None:
    class Searches(HeatReader):
        def read(self, path: Path, report: Report, context: Context) -> Iterator[Any]:
            study = Study("s1", "search", {}, "run_seconds", "s", 0, 1)
            values = path.read_text().split()
            report.read = len(values)
            yield History(
                study, tuple(Trial({"x": n}, TrialState.DONE, float(v), f"t{n}") for n, v in enumerate(values))
            )

    path = tmp_path / "search.txt"
    path.write_text("3\n")
    assert load(store, path, Searches()).trials == 1
    path.write_text("3\n4\n")
    load(store, path, Searches())
    with store.catalog.read() as session:
        assert [trial.objective for trial in session.studies.trials("s1")] == [3.0, 4.0]


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
