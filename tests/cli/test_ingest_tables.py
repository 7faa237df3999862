"""Tables through the verbs: ingested, and then asked about."""

import json
from pathlib import Path

import pytest
from tests.cli.asking import Ask, asking
from tests.ingest.trees import RECORDINGS
from tests.needs import needs_data
from tests.serving import answering

from crosswind.data.store.store import Store

MAP = """
table: runs
workload: bench
ranks: gpus
nodes: nodes
seconds: {column: minutes, unit: min}
energy: {column: kwh, unit: kWh}
start: date
configuration: [batch]
"""
HEADER = "bench,gpus,nodes,minutes,kwh,date,batch\n"
LINES = [
    f"bert,{gpus},{gpus // 8},{640 / gpus + 0.01 * day},3.5,2026-03-{day:02} 10:00:00,8\n"
    for gpus in (32, 64)
    for day in range(1, 9)
]
SHARED = Path(__file__).resolve().parents[2].parent / "shared/data"
TRACE = SHARED / "traces/steps/bytedance_ST.parquet"


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    for name in ("CROSSWIND_SERVER", "CROSSWIND_TOKEN", "CROSSWIND_TOKEN_FILE", "CROSSWIND_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_SYSTEM", "here")
    monkeypatch.chdir(tmp_path)
    Path("runs.csv").write_text(HEADER + "".join(LINES))
    Path("map.yaml").write_text(MAP)
    return asking(capsys)


def test_a_table_of_runs_answers_questions(ask: Ask) -> None:
    code, said, _ = ask("ingest", "runs.csv", "--map", "map.yaml")
    assert code == 0
    assert "runs.csv (table): 16 rows read, 0 skipped" in said
    assert "The store holds 16 runs of 1 workload in 2 cohorts" in said
    assert "energy: yes: 16 of the newest 16 runs state their energy" in said
    listed = json.loads(ask("runs", "--json")[1])
    assert len(listed["runs"] if isinstance(listed, dict) else listed) == 16
    predicted = ask("predict", "--workload", "bert", "--ranks", "64", "--config", "batch=8", "--json")
    answer = json.loads(predicted[1])
    assert answer["outcome"] == "run_seconds"
    median = next(one["seconds"] for one in answer["quantiles"] if one["level"] == 0.5)
    assert median == pytest.approx(603, rel=0.01)  # ten minutes, and what each day adds
    assert answer["energy"]["joules"] == pytest.approx(3.5 * 3.6e6, rel=0.05)


def test_the_same_table_again_changes_nothing_and_one_that_grew_adds_its_rows(ask: Ask) -> None:
    first = ask("ingest", "runs.csv", "--map", "map.yaml", "--json")[1]
    again = json.loads(ask("ingest", "runs.csv", "--map", "map.yaml", "--json")[1])["loaded"]
    assert (again["batches"], again["duplicates"], again["runs"]) == (0, 1, [])
    with Path("runs.csv").open("a") as table:
        table.write("bert,128,16,5.1,3.5,2026-03-20 10:00:00,8\nbert,x,16,5.1,3.5,2026-03-21 10:00:00,8\n")
    said = ask("ingest", "runs.csv", "--map", "map.yaml")[1]
    assert "17 rows read, 1 skipped" in said
    assert "  line 19: ranks (column 'gpus') is 'x'" in said
    assert "The store holds 17 runs" in said
    assert len(json.loads(first)["loaded"]["runs"]) == 16


def test_another_map_of_the_same_rows_replaces_what_was_made_of_them(ask: Ask, tmp_path: Path) -> None:
    ask("ingest", "runs.csv", "--map", "map.yaml")
    Path("map.yaml").write_text(MAP.replace("unit: min", "unit: s"))
    assert ask("ingest", "runs.csv", "--map", "map.yaml")[0] == 0
    with Store.open(tmp_path / "home") as store, store.catalog.read() as session:
        runs = session.runs.find(limit=99)
    assert len(runs) == 16
    assert all(run.seconds is not None and run.seconds < 60 for run in runs)


def test_a_dry_run_shows_what_would_be_stored_and_stores_nothing(ask: Ask, tmp_path: Path) -> None:
    code, said, _ = ask("ingest", "runs.csv", "--map", "map.yaml", "--dry-run")
    assert code == 0
    assert "would store: 16 runs of bert (16)" in said
    assert "such as run bert, here, completed, 32 ranks, 20" in said
    assert "configuration batch=8" in said
    assert said.endswith("nothing was stored (--dry-run)\n")
    answer = json.loads(ask("ingest", "runs.csv", "--map", "map.yaml", "--dry-run", "--json")[1])
    assert answer["dry_run"][0]["runs"] == 16
    assert not (tmp_path / "home").exists()
    code, said, _ = ask("ingest", "runs.csv", "nosuch.csv", "--dry-run")
    assert code == 2
    assert "problem: runs.csv: " in said
    assert "problem: nosuch.csv: No such file" in said


def test_a_map_that_is_wrong_is_named_and_nothing_is_stored(ask: Ask, tmp_path: Path) -> None:
    Path("map.yaml").write_text(MAP.replace("column: minutes", "column: minute"))
    code, said, _ = ask("ingest", "runs.csv", "--map", "map.yaml")
    assert code == 2
    assert "problem: map.yaml: seconds: runs.csv has no column 'minute'; did you mean 'minutes'?" in said
    with Store.open(tmp_path / "home") as store, store.catalog.read() as session:
        assert session.runs.count() == 0
    code, _, complaint = ask("ingest", "runs.csv", "--map", "nosuch.yaml")
    assert (code, "nosuch.yaml: No such file" in complaint) == (75, True)
    code, _, complaint = ask("ingest", "runs.csv", "--map", "map.yaml", "--format", "sacct")
    assert (code, "--map with --format sacct: expected no --format" in complaint) == (2, True)


def test_a_table_of_operations_is_replayed(ask: Ask, tmp_path: Path) -> None:
    code, said, _ = ask("ingest", str(RECORDINGS / "table" / "operations.parquet"), "--workload", "llm", "--json")
    assert code == 0
    [run_id] = json.loads(said)["loaded"]["runs"]
    code, said, _ = ask("stragglers", "--replay", run_id)
    assert code == 0
    assert said.startswith(f"{run_id} (4 ranks): S = ")
    assert "stage 1 alone makes it" in said.splitlines()[0]
    assert "from: 2 steps of" in said
    answer = json.loads(ask("stragglers", "--replay", run_id, "--json")[1])
    assert [part["number"] for part in answer["by_stage"]] == [1, 0]
    assert {part["number"] for part in answer["by_rank"][:2]} == {2, 3}
    with answering(tmp_path / "home") as url:
        assert json.loads(ask("stragglers", "--replay", run_id, "--json", "--server", url)[1]) == answer
    assert ask("stragglers", "--replay", run_id, "--live", run_id)[0] == 2


def test_trials_of_a_table_are_a_source_of_a_study(ask: Ask) -> None:
    lines = [f"{bucket},{kind},{bucket * 10 + place}\n" for bucket in (1, 2, 4, 8) for place, kind in enumerate("ab")]
    Path("trials.csv").write_text("bucket,kind,ms\n" + "".join(lines))
    Path("trials.yaml").write_text(
        "table: trials\nobjective: {column: ms, name: step_p50_seconds, unit: ms}\nparameters: [bucket, kind]\n"
        "workload: {value: gemm}\n"
    )
    assert ask("ingest", "trials.csv", "--map", "trials.yaml")[0] == 0
    Path("study.yaml").write_text(
        "name: new\nobjective: step_p50_seconds\ndetails: {workload: gemm}\nparameters:\n"
        "  bucket: {kind: ordinal, values: [1, 2, 4, 8]}\n  kind: {kind: categorical, values: [a, b]}\n"
    )
    assert ask("tune", "create", "study.yaml")[0] == 0
    [first] = json.loads(ask("tune", "next", "new", "--json")[1])
    assert first["configuration"] == {"bucket": 1, "kind": "a"}  # the best of the table is tried first


@needs_data(TRACE)
def test_a_published_trace_needs_no_map_and_gives_the_published_slowdown(ask: Ask) -> None:
    run_ids = json.loads(ask("ingest", str(TRACE), "--json")[1])["loaded"]["runs"]
    answer = json.loads(ask("stragglers", "--replay", run_ids[0], "--json")[1])
    assert answer["slowdown_ratio"] == pytest.approx(1.179, abs=0.01)
    assert answer["by_stage"][0]["number"] == 3
    assert answer["by_stage"][0]["alone_ratio"] == pytest.approx(1.232, abs=0.01)
    assert {part["number"] for part in answer["by_rank"][:2]} == {6, 7}
    assert answer["sequence"]["is_imbalanced"] is False
