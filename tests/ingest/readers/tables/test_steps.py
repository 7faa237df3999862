"""Tables of steps and operations of ranks."""

from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from tests.ingest.readers.tables.reading import read
from tests.ingest.trees import RECORDINGS

from crosswind.data.lake.lake import set_of
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.run import Run
from crosswind.ingest.reader.reader import Context, Record
from crosswind.ingest.readers.tables import table_file
from crosswind.ingest.readers.tables.step_rows import RUNS_MAX

STEPS = """
table: steps
run: job
workload: {value: gpt}
rank: r
step: i
seconds: {column: ms, unit: ms}
comm: {column: wait, unit: ms}
"""
HEADER = "job,r,i,ms,wait,at\n"


def rows(records: list[Record], name: str = "step") -> list[dict[str, object]]:
    """The rows of a set."""
    tables = [record for record in records if isinstance(record, pa.Table) and set_of(record.schema).name == name]
    return [row for table in tables for row in table.to_pylist()]


def runs(records: list[Record]) -> list[Run]:
    """The runs."""
    return [record for record in records if isinstance(record, Run)]


def table(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "steps.csv"
    path.write_text(HEADER + "".join(f"{line}\n" for line in lines))
    return path


def test_steps_become_rows_of_their_run(tmp_path: Path) -> None:
    path = table(tmp_path, "a,0,0,500,100,", "a,1,0,500,0,", "a,0,1,400,100,", "b,0,0,300,0,")
    records, report = read(path, STEPS)
    steps = rows(records)
    assert [(row["rank"], row["step"], row["duration_seconds"]) for row in steps[:3]] == [
        (0, 0, 500_000_000),
        (1, 0, 500_000_000),
        (0, 1, 400_000_000),
    ]
    assert steps[0]["comm_seconds"] == 100_000_000
    assert steps[0]["compute_seconds"] == 400_000_000  # what the mapped phases leave
    assert steps[2]["ts_ns"] == int(str(steps[0]["ts_ns"])) + 500_000_000  # after the one before on its rank
    first, second = runs(records)
    assert (first.workload, first.world_size, first.seconds) == ("gpt", 2, pytest.approx(0.9))
    assert (second.world_size, second.tags["table_run"]) == (1, "b")
    assert report.read == 6


def test_steps_with_times_keep_them(tmp_path: Path) -> None:
    path = table(tmp_path, "a,0,0,500,0,1772359200000", "a,0,1,500,0,1772359201000")
    text = STEPS + "start: {column: at, unit: ms}\n"
    records, _ = read(path, text)
    assert [row["ts_ns"] for row in rows(records)] == [1_772_359_200_000_000_000, 1_772_359_201_000_000_000]
    assert runs(records)[0].started_ns == 1_772_359_200_000_000_000


@pytest.mark.parametrize(
    ("cell", "ns"),
    [
        ("2026-03-01 10:00:00", 1_772_355_600_000_000_000),  # Berlin is an hour ahead
        ("2026-03-01T10:00:00.25Z", 1_772_359_200_250_000_000),
        ("2026-03-01T10:00:00+09:00", 1_772_326_800_000_000_000),
        ("1772359200123456789", 1_772_359_200_123_456_789),
    ],
)
def test_steps_begin_at_a_time_in_any_usual_form(tmp_path: Path, cell: str, ns: int) -> None:
    path = table(tmp_path, f"a,0,0,500,0,{cell}")
    context = Context("here", zone=ZoneInfo("Europe/Berlin"))
    records, _ = read(path, STEPS + "start: {column: at, unit: ns}\n", context)
    assert [row["ts_ns"] for row in rows(records)] == [ns]


def test_rows_at_fault_are_quoted_once_and_the_others_come(tmp_path: Path) -> None:
    lines = ["a,0,0,500,100,", "a,x,0,500,100,", "a,1,-1,500,100,", "a,1,0,,0,", "a,1,0,5,9,", "a,1,1.5,x,y,"]
    records, report = read(table(tmp_path, *lines), STEPS)
    assert len(rows(records)) == 1
    assert [(skipped.line, skipped.reason.split("; ")[0]) for skipped in report.quoted] == [
        (3, "rank (column 'r') is 'x'"),
        (4, "step (column 'i') is '-1'"),
        (5, "seconds (column 'ms') is ''"),
        (6, "its phases are longer than the step"),
        (7, "step (column 'i') is '1.5'"),
    ]


def test_lines_keep_their_numbers_however_they_are_read(tmp_path: Path) -> None:
    lines = [f"a,{number},0,500,0," for number in range(5)]
    for place, odd in ((0, '"a",x,0,1,0,'), (4, '"a",x,0,1,0,'), (0, "a,x,0,1,0,"), (4, "a,x"), (2, "a,x,0,1,0,,,")):
        _, report = read(table(tmp_path, *lines[:place], odd, *lines[place:]), STEPS)
        assert [skipped.line for skipped in report.quoted] == [place + 2]


def test_a_table_that_is_read_in_pieces_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = table(tmp_path, *(f"a,{number % 3},{number // 3},{500 + number},0," for number in range(60)))
    whole, _ = read(path, STEPS)
    monkeypatch.setattr(table_file, "ROWS_AT_ONCE", 7)
    pieces, _ = read(path, STEPS)
    assert rows(pieces) == rows(whole)
    assert runs(pieces) == runs(whole)


def test_two_tables_of_one_name_are_two_runs(tmp_path: Path) -> None:
    text = STEPS.replace("run: job\n", "")
    first, _ = read(table(tmp_path, "a,0,0,500,0,"), text)
    second, _ = read(table(tmp_path, "a,0,0,501,0,"), text)
    assert runs(first)[0].run_id != runs(second)[0].run_id


def test_as_many_runs_as_rows_are_no_table_of_steps(tmp_path: Path) -> None:
    path = table(tmp_path, *(f"{number},0,0,5,0," for number in range(RUNS_MAX + 1)))
    with pytest.raises(MalformedError, match="more than 100000 runs"):
        read(path, STEPS)


def test_operations_are_recognised_and_make_up_steps() -> None:
    records, report = read(RECORDINGS / "table" / "operations.parquet", None)
    operations, steps = rows(records, "operation"), rows(records)
    assert report.skipped == 0
    assert (len(operations), len(steps)) == (40, 8)
    assert operations[0]["operation"] == "forward-compute"
    assert (operations[0]["stage"], operations[0]["replica"], operations[0]["micro_batch"]) == (0, 0, 0)
    assert operations[1]["micro_batch"] is None
    late = next(row for row in steps if row["rank"] == 2 and row["step"] == 4)
    assert late["duration_seconds"] == 770_000_000
    assert late["compute_seconds"] == 400_000_000
    assert late["comm_seconds"] == 370_000_000
    [run] = runs(records)
    assert (run.world_size, run.workload) == (4, "operations")
    assert run.seconds == pytest.approx(2 * 0.77)  # steps whose times begin anew follow each other
