"""Tables of runs, in every form that a table may have."""

import gzip
import json
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.ingest.readers.tables.reading import read, runs_of
from tests.needs import needs_data

from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.facts import Facts
from crosswind.data.schema.question import DEGREE_NAMES
from crosswind.data.schema.run import Run, RunState
from crosswind.ingest.reader.reader import Context

MAP = """
table: runs
workload: [suite, bench]
ranks: gpus
nodes: nodes
seconds: {column: minutes, unit: min}
energy: {column: kwh, unit: kWh}
start: {column: began, unit: ms}
state: {column: status, completed: success, failed: [aborted]}
configuration: [batch, lr]
tags: {owner: who}
"""
COLUMNS = ("suite", "bench", "gpus", "nodes", "minutes", "kwh", "began", "status", "batch", "lr", "who")
ROW = ("mlperf", "bert", 64, 8, 5.5, 2.0, 1_634_750_757_123, "success", 3072, 0.25, "007")
EXPECTED = {
    "workload": "mlperf/bert",
    "system": "here",
    "state": RunState.COMPLETED,
    "world_size": 64,
    "configuration": {"batch": 3072, "lr": 0.25},
    "started_ns": 1_634_750_757_123_000_000,
    "ended_ns": 1_634_750_757_123_000_000 + 330 * 10**9,
    "tags": {"imported_from": "table", "energy_joules": "7200000", "owner": "007"},
    "facts": Facts(node_count=8),
}
SHARED = Path(__file__).resolve().parents[4].parent / "shared/data"
MLPERF, VTRAIN = SHARED / "mlperf/runs.parquet", SHARED / "vtrain/ground_truth_single.csv"


def written(path: Path, *rows: tuple[object, ...]) -> Path:
    """Write rows in the form that the path's ending names."""
    if path.suffix == ".parquet":
        columns = [list(cells) for cells in zip(*rows, strict=True)]
        pq.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True))), path)
        return path
    if path.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(COLUMNS, row, strict=True))) for row in rows]
    else:
        sign = "\t" if path.suffix == ".tsv" else ";" if path.name.startswith("semi") else ","
        lines = [sign.join(map(str, row)) for row in (COLUMNS, *rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "semi.csv", "t.jsonl", "t.parquet"])
def test_a_row_is_a_run(tmp_path: Path, name: str) -> None:
    [run] = runs_of(written(tmp_path / name, ROW), MAP)
    assert {field: getattr(run, field) for field in EXPECTED} == EXPECTED


def test_other_rows_are_other_runs_and_the_same_row_is_a_repeat(tmp_path: Path) -> None:
    first, again, other = runs_of(written(tmp_path / "t.csv", ROW, ROW, (*ROW[:4], 5.75, *ROW[5:])), MAP)
    assert len({first.run_id, again.run_id, other.run_id}) == 3
    assert again.configuration == first.configuration
    [alone] = runs_of(written(tmp_path / "renamed.csv", ROW), MAP.replace("kWh", "MJ"))
    assert alone.run_id == first.run_id  # whatever the map says of its row, and whatever the file is called


def test_rows_that_cannot_be_understood_are_quoted_and_the_others_come(tmp_path: Path) -> None:
    rows = [ROW] * 9
    rows[1] = (*ROW[:4], "fast", *ROW[5:])
    rows[2] = (*ROW[:2], 6.5, *ROW[3:])
    rows[3] = (*ROW[:4], -1, *ROW[5:])
    rows[4] = (*ROW[:6], "yesterday", *ROW[7:])
    rows[5] = (*ROW[:7], "odd", *ROW[8:])
    rows[6] = (*ROW[:5], "nan", *ROW[6:])
    rows[7] = ("mlperf", "bert")
    records, report = read(written(tmp_path / "t.csv", *rows), MAP)
    assert (len(records), report.read, report.skipped) == (2, 2, 7)
    assert [(skipped.line, skipped.reason.split("; ")[0]) for skipped in report.quoted] == [
        (3, "seconds (column 'minutes') is 'fast'"),
        (4, "ranks (column 'gpus') is 6.5"),
        (5, "seconds (column 'minutes') is -60 s"),
        (6, "start (column 'began') is 'yesterday'"),
        (7, "state is 'odd'"),
        (8, "energy (column 'kwh') is 'nan'"),
        (9, "2 cells"),
    ]


def test_what_a_row_does_not_say_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("w,t,n,a,b\nx,5,,1,\nx,5,2,,ring\n")
    text = "table: runs\nworkload: w\nseconds: t\nranks: n\nconfiguration: [a, b]\n"
    first, second = runs_of(path, text)
    assert (first.world_size, first.configuration) == (None, {"a": 1})
    assert (second.world_size, second.configuration) == (2, {"b": "ring"})
    assert first.started_ns is not None
    assert second.started_ns is not None
    assert 0 < second.started_ns - first.started_ns < 10**6  # in the order of the rows
    assert "time_from" in first.tags


def test_nodes_may_be_named_and_ranks_counted_by_node(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('w,t,where\nx,5,"n[1-3],m7"\n')
    [run] = runs_of(path, "table: runs\nworkload: w\nseconds: t\nnodes: where\nranks_per_node: {value: 8}\n")
    assert (run.nodes, run.facts.node_count, run.world_size) == (("n1", "n2", "n3", "m7"), 4, 32)


@pytest.mark.parametrize(
    ("cell", "ns"),
    [
        ("2026-03-01 10:00:00", 1_772_355_600_000_000_000),  # Berlin is an hour ahead
        ("2026-03-01T10:00:00.25Z", 1_772_359_200_250_000_000),
        ("2026-03-01T10:00:00+09:00", 1_772_326_800_000_000_000),
        ("1772359200", 1_772_359_200_000_000_000),
        ("1772359200.5", 1_772_359_200_500_000_000),
    ],
)
def test_a_start_is_a_time_in_any_usual_form(tmp_path: Path, cell: str, ns: int) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"w,t,s\nx,5,{cell}\n")
    context = Context("here", zone=ZoneInfo("Europe/Berlin"))
    assert runs_of(path, "table: runs\nworkload: w\nseconds: t\nstart: s\n", context)[0].started_ns == ns


def test_times_and_categories_of_parquet_are_read(tmp_path: Path) -> None:
    times = pa.array([1_772_359_200_250_000], pa.timestamp("us", "UTC"))
    table = pa.table({"w": pa.array(["x"]).dictionary_encode(), "t": pa.array([5.0]), "s": times, "n": pa.array([8.0])})
    pq.write_table(table, tmp_path / "t.parquet")
    text = "table: runs\nworkload: w\nseconds: t\nstart: s\nconfiguration: [n]\n"
    [run] = runs_of(tmp_path / "t.parquet", text)
    assert (run.workload, run.started_ns) == ("x", 1_772_359_200_250_000_000)
    assert run.configuration == {"n": 8}
    assert isinstance(run.configuration["n"], int)


def test_a_run_that_failed_needs_no_time(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("w,t,s\nx,,failed\nx,,completed\n")
    records, report = read(path, "table: runs\nworkload: w\nseconds: t\nstate: s\n")
    assert [record.state for record in records if isinstance(record, Run)] == [RunState.FAILED]
    assert "neither seconds nor end are in it" in report.quoted[0].reason


def test_quoted_cells_may_hold_delimiters_and_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('w,t,note\nx,5,"a, ""b""\nand c"\nx,fast,"d"\n')
    records, report = read(path, "table: runs\nworkload: w\nseconds: t\ntags: [note]\n")
    assert isinstance(records[0], Run)
    assert records[0].tags["note"] == 'a, "b"\nand c'
    assert report.quoted[0].line == 4


def test_a_named_run_is_one_run_and_of_two_rows_the_last_counts(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("w,t,id\nx,5,a\nx,6,a\n")
    records, report = read(path, "table: runs\nworkload: w\nseconds: t\nrun: id\n")
    assert len({record.run_id for record in records if isinstance(record, Run)}) == 1
    assert "1 rows name the run of another row: the last one counts (`run` of the map)" in report.notes


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,a\n1,2\n", "two columns are named 'a'"),
        ("a,,b\n1,2,3\n", "column 2 has no name"),
        ("", "0 columns"),
    ],
)
def test_a_table_without_names_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(MalformedError, match=reason):
        read(tmp_path / "t.csv", MAP)


def test_a_parquet_file_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "t.parquet", ROW)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(MalformedError, match=r"t\.parquet: damaged or cut short after 0 rows"):
        read(path, MAP)


def test_the_columns_are_named_where_nothing_says_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(MalformedError, match=r"columns a, b; expected a known layout, or --map FILE"):
        read(path, None)


def test_a_table_in_our_words_needs_no_map(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("workload,seconds,ranks,batch,tag.owner,energy_joules,nodes\nx,5,4,8,ada,100,2\n")
    [run] = runs_of(path, None)
    assert (run.workload, run.world_size, run.seconds) == ("x", 4, 5.0)
    assert run.configuration == {"batch": 8}
    assert (run.tags["owner"], run.tags["energy_joules"], run.facts.node_count) == ("ada", "100", 2)


FACTS = """
table: runs
workload: w
seconds: s
facts: {accelerator: gpu, accelerators_per_node: n, accelerator_memory_bytes: mem, cuda: {value: 12.4}}
"""


def test_columns_may_be_facts_about_system_and_software(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("w,s,gpu,n,mem\nx,5,NVIDIA A40,8,48e9\nx,6,N/A,,\n")
    first, second = runs_of(path, FACTS)
    assert first.facts == Facts(
        accelerator="NVIDIA A40", accelerators_per_node=8, accelerator_memory_bytes=48e9, cuda="12.4"
    )
    assert second.facts == Facts(cuda="12.4")
    path.write_text("workload,seconds,fact.accelerator,fact.node_count,batch\nx,5,MI300X,2,8\n")
    [own] = runs_of(path, None)
    assert (own.facts, own.configuration) == (Facts(accelerator="MI300X", node_count=2), {"batch": 8})


def test_a_cell_that_is_no_fact_is_refused_with_its_row(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("w,s,gpu,n,mem\nx,5,A40,2.5,\nx,5,A40,many,\nx,6,A40,2,\n")
    records, report = read(path, FACTS)
    assert [record.facts.accelerators_per_node for record in records if isinstance(record, Run)] == [2]
    assert [skipped.reason for skipped in report.quoted] == [
        "fact accelerators_per_node is 2.5, expected a whole number from 0 to 10000000",
        "accelerators_per_node is 'many'; expected a number with a decimal point",
    ]


def test_a_name_that_is_no_fact_is_refused_by_the_map(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("w,s,gpu\nx,5,A40\n")
    with pytest.raises(MalformedError, match="facts: 'accelerater' is no fact; did you mean accelerator"):
        read(path, FACTS.replace("accelerator: gpu", "accelerater: gpu"))


def test_mean_step_times_are_steps_after_the_warm_up(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("workload,step_seconds,steps\nx,0.5,100\n")
    run, steps = read(path, None)[0]
    assert isinstance(run, Run)
    assert run.seconds == 50.0
    assert steps.to_pylist()[0]["step"] == 99  # type: ignore[union-attr]
    assert steps.to_pylist()[0]["duration_seconds"] == 500_000_000  # type: ignore[union-attr]


@needs_data(MLPERF)
def test_published_runs_of_mlperf_are_read() -> None:
    text = """
table: runs
workload: benchmark
system: system
ranks: n_units
nodes: n_nodes
seconds: {column: ttt_min, unit: min}
start: {column: run_start_ms, unit: ms}
state: {column: status, completed: success, failed: aborted}
configuration: [gbs, "hp_opt_*"]
tags: [round, submitter]
"""
    records, report = read(MLPERF, text)
    runs = [record for record in records if isinstance(record, Run)]
    assert len(runs) + report.skipped == 17_270
    assert report.skipped == 34  # rows of results without a benchmark
    assert len({run.run_id for run in runs}) == len(runs)


@needs_data(VTRAIN)
def test_published_iterations_of_vtrain_need_no_map(tmp_path: Path) -> None:
    records, report = read(VTRAIN, None)
    assert sum(isinstance(record, Run) for record in records) == 1440
    assert report.skipped == 0
    packed = tmp_path / "packed.csv.gz"
    packed.write_bytes(gzip.compress(VTRAIN.read_bytes()))
    assert runs_of(packed, None)[7].run_id == runs_of(VTRAIN, None)[7].run_id


def test_degrees_of_vtrain_have_names_that_questions_know(tmp_path: Path) -> None:
    names = ("# GPUs", "global batch", "micro batch", "hidden size", "attention heads", "# layers", "sequence length")
    degrees = ("tensor parallelism", "data parallelism", "pipeline parallelism")
    table = tmp_path / "measured.csv"
    table.write_text(f"{','.join((*names, *degrees))},iteration time (ms)\n8,32,4,1024,16,24,1024,2,2,2,219.5\n")
    [run] = runs_of(table, None)
    assert DEGREE_NAMES & set(run.configuration) == {"tensor_parallel", "data_parallel", "pipeline_parallel"}
