"""Finished trials of other tools taken over into a study: what fits its space, once; the rest is counted."""

import json
from pathlib import Path

import pytest
from tests.cli.asking import Ask, asking
from tests.ingest.trees import RECORDINGS

TABLE = "batch,mode,loss,note\n8,fast,0.5,a\n16,slow,0.25,b\n16,other,0.1,c\n32,fast,,broke\n"
STUDY = """
objective: loss
parameters:
  batch: {kind: int, low: 1, high: 64}
  mode: {kind: categorical, values: [fast, slow]}
"""
OPTUNA = """
objective: objective
parameters:
  workers: {kind: int, low: 1, high: 8}
  lr: {kind: float, low: 1.0e-5, high: 0.1, log: true}
"""
KERNEL = """
objective: time
parameters:
  block: {kind: ordinal, values: [1, 16, 64]}
  rounds: {kind: ordinal, values: [1, 2]}
  mode: {kind: categorical, values: [a]}
"""


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    for name in ("CROSSWIND_SERVER", "CROSSWIND_TUNE_FOLDER", "CROSSWIND_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    verb = asking(capsys)
    for name, study in (("table", STUDY), ("optuna", OPTUNA), ("kernel", KERNEL)):
        Path(f"{name}.yaml").write_text(study)
        assert verb("tune", "create", f"{name}.yaml")[0] == 0
    return verb


def trials(ask: Ask, study: str) -> list[dict[str, object]]:
    records: list[dict[str, object]] = json.loads(ask("tune", "status", study, "--json")[1])["trials"]
    return [record["trial"] for record in records]  # type: ignore[misc]


def test_rows_of_a_table_that_fit_become_trials_once(ask: Ask) -> None:
    Path("old.csv").write_text(TABLE)
    code, said, _ = ask("tune", "import", "table", "old.csv")
    assert code == 0
    assert said.splitlines()[0] == "3 trials taken over into table, 1 do not fit its space"
    assert "trial 2" in said.splitlines()[1]
    assert "other" in said.splitlines()[1]
    again = json.loads(ask("tune", "import", "table", "old.csv", "--json")[1])
    assert (again["trials"], len(again["refused"])) == (3, 1)
    stored = trials(ask, "table")
    assert sorted((trial["state"], trial["objective"]) for trial in stored if trial["state"] == "done") == [
        ("done", 0.25),
        ("done", 0.5),
    ]
    assert [trial["state"] for trial in stored].count("failed") == 1
    assert len(stored) == 3
    assert json.loads(ask("tune", "best", "table", "--json")[1])["configuration"] == {"batch": 16, "mode": "slow"}


def test_what_was_taken_over_is_not_suggested_again(ask: Ask) -> None:
    Path("old.tsv").write_text("batch\tmode\tloss\n" + "".join(f"{batch}\tfast\t0.5\n" for batch in range(1, 65)))
    assert ask("tune", "import", "table", "old.tsv")[0] == 0
    [suggestion] = json.loads(ask("tune", "next", "table", "--json")[1])
    assert suggestion["configuration"]["mode"] == "slow"


def test_a_larger_objective_counts_as_better_where_the_study_maximises(ask: Ask) -> None:
    Path("rate.yaml").write_text(STUDY.replace("loss", "rate") + "direction: maximise\n")
    ask("tune", "create", "rate.yaml")
    Path("old.csv").write_text(TABLE.replace("loss", "rate"))
    ask("tune", "import", "rate", "old.csv")
    assert json.loads(ask("tune", "best", "rate", "--json")[1])["configuration"]["batch"] == 8


@pytest.mark.parametrize("name", ["optuna/optuna.db", "optuna_journal/journal.log"])
def test_a_study_of_optuna_is_taken_over_with_the_parameters_that_are_searched(ask: Ask, name: str) -> None:
    code, said, complaint = ask("tune", "import", "optuna", str(RECORDINGS / name), "--of", "step-time")
    assert (code, complaint) == (0, "")
    assert "8 trials taken over into optuna, 0 do not fit" in said
    stored = trials(ask, "optuna")
    assert {row["state"] for row in stored} == {"done", "failed", "pruned"}
    assert min(row["objective"] for row in stored if row["objective"] is not None) == pytest.approx(4.13259129047242)  # type: ignore[type-var]
    assert all(set(row["configuration"]) == {"workers", "lr"} for row in stored)  # type: ignore[call-overload]


def test_a_file_of_several_studies_asks_which_one_is_meant(ask: Ask) -> None:
    code, _, complaint = ask("tune", "import", "optuna", str(RECORDINGS / "optuna/optuna.db"))
    assert code == 2
    assert "--of NAME says which one is meant" in complaint
    assert "step-time-" in complaint
    assert trials(ask, "optuna") == []


def test_of_a_cache_of_kernel_tuner_what_lies_in_the_space_is_taken_over(ask: Ask) -> None:
    cache = RECORDINGS / "kernel_tuner/scale.json"
    within = [entry for entry in json.loads(cache.read_text())["cache"].values() if entry["mode"] == "a"]
    code, said, _ = ask("tune", "import", "kernel", str(cache))
    assert code == 0
    assert said.startswith(f"{len(within)} trials taken over into kernel, ")
    done = [trial["objective"] for trial in trials(ask, "kernel") if trial["state"] == "done"]
    assert sorted(done) == sorted(entry["time"] for entry in within if isinstance(entry["time"], float))  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("old.csv", b"batch,mode\n8,fast\n", "no column loss, found batch, mode"),
        ("old.csv", b"", "no column loss, found"),
        ("old.csv", b"batch,mode,loss\n8,fast,0.5\n8,slow,nan\n", "row 3: loss is 'nan', expected a finite number"),
        ("old.csv", b"batch,mode,loss\n8,fast,quick\n", "row 2: loss is 'quick', expected a finite number"),
        ("old.csv", b"batch,mode,loss\n8,fast,1e999\n", "row 2: loss is '1e999', expected a finite number"),
        ("old.csv", b"batch,mode,loss\n\xff\xfe,fast,1\n", "old.csv: 'utf-8' codec"),
        ("old.csv", b"batch,mode,loss\n" + b"8,fast,1\n" * 5001, "more than 5000 rows"),
        ("old.db", b"SQLite format 3\x00" + bytes(80), "old.db"),
        ("old.log", bytes(range(256)), "old.log"),
    ],
    ids=["column", "empty", "nan", "text", "huge", "binary", "many", "truncated", "noise"],
)
def test_a_file_that_cannot_be_read_is_refused_whole(ask: Ask, name: str, content: bytes, says: str) -> None:
    Path(name).write_bytes(content)
    code, said, complaint = ask("tune", "import", "table", name)
    assert (code, said) == (2, "")
    assert says in complaint
    assert trials(ask, "table") == []


def test_every_file_of_a_folder_that_can_be_read_is_taken_and_each_is_told(ask: Ask) -> None:
    for name, text in (
        ("a.csv", TABLE),
        ("deep/b.tsv", "batch\tmode\tloss\n32\tfast\t0.125\n"),
        ("other.csv", "batch,mode,cost\n1,fast,2\n"),
        ("README.md", "Measured in May.\n"),
        (".hidden.csv", "batch,mode,loss\n64,slow,9\n"),
    ):
        path = Path("results", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    code, said, _ = ask("tune", "import", "table", "results")
    assert code == 0
    lines = said.splitlines()
    assert lines[0] == "4 trials taken over into table, 1 do not fit its space"
    assert lines[2].startswith("README.md: nothing: results/README.md")
    assert lines[3:5] == ["a.csv: 3 trials, 1 not of the space", "deep/b.tsv: 1 trial"]
    assert lines[5].startswith("other.csv: nothing: results/other.csv: no column loss, found batch, mode, cost")
    again = json.loads(ask("tune", "import", "table", "results", "--json")[1])
    assert [(file["file"], file["trials"], file["problem"] is None) for file in again["files"]] == [
        ("README.md", 0, False),
        ("a.csv", 3, True),
        ("deep/b.tsv", 1, True),
        ("other.csv", 0, False),
    ]
    assert len(trials(ask, "table")) == 4
    assert json.loads(ask("tune", "best", "table", "--json")[1])["objective"] == 0.125


def test_caches_of_kernel_tuner_in_a_folder_are_taken(ask: Ask) -> None:
    Path("caches").mkdir()
    cache = RECORDINGS / "kernel_tuner/scale.json"
    for name in ("one.json", "same.json"):
        Path("caches", name).write_bytes(cache.read_bytes())
    answer = json.loads(ask("tune", "import", "kernel", "caches", "--json")[1])
    [one, same] = answer["files"]
    assert one["trials"] == same["trials"] == answer["trials"] == len(trials(ask, "kernel")) > 0


def test_a_folder_without_any_trial_is_refused_with_the_reasons(ask: Ask) -> None:
    Path("empty").mkdir()
    assert "empty: none of its 0 files has trials of table" in ask("tune", "import", "table", "empty")[2]
    Path("empty", "x.csv").write_text("a,b\n1,2\n")
    code, said, complaint = ask("tune", "import", "table", "empty")
    assert (code, said) == (2, "")
    assert "none of its 1 files has trials of table" in complaint
    assert "x.csv: nothing: empty/x.csv: no column loss, found a, b" in complaint
    assert trials(ask, "table") == []


def test_a_missing_file_and_a_study_elsewhere_are_told(ask: Ask, tmp_path: Path) -> None:
    assert "none.csv: No such file" in ask("tune", "import", "table", "none.csv")[2]
    assert "'nobody'" in ask("tune", "import", "nobody", "none.csv")[2]
    complaint = ask("tune", "import", "table", "none.csv", "--folder", str(tmp_path))[2]
    assert "the study is in a folder: import where its store is" in complaint


RAY = """
objective: accuracy
direction: maximise
parameters:
  lr: {kind: float, low: 0.00001, high: 0.1, log: true}
  model/width: {kind: int, low: 8, high: 512, log: true}
"""


def test_an_experiment_of_ray_tune_is_taken_over_from_its_folder(ask: Ask) -> None:
    Path("ray.yaml").write_text(RAY)
    ask("tune", "create", "ray.yaml")
    code, said, complaint = ask("tune", "import", "ray", str(RECORDINGS / "ray_tune/quick"))
    assert (code, complaint) == (0, "")
    assert said.startswith("8 trials taken over into ray, 0 do not fit")
    best = json.loads(ask("tune", "best", "ray", "--json")[1])
    assert (best["objective"], best["configuration"]["model/width"]) == (0.860426, 86)


def test_results_of_kernel_tuner_are_taken_over(ask: Ask) -> None:
    code, said, _ = ask("tune", "import", "kernel", str(RECORDINGS / "kernel_tuner_t4/scale-results.json"))
    assert code == 0
    assert said.startswith("6 trials taken over into kernel, 7 do not fit")


def test_what_was_maximised_is_refused_by_a_study_that_minimises(ask: Ask) -> None:
    code, _, complaint = ask("tune", "import", "optuna", str(RECORDINGS / "ray_tune/quick"))
    assert code == 2
    assert "accuracy was maximised, expected an objective that is minimised, as in study optuna" in complaint
    Path("rate.yaml").write_text(STUDY + "direction: maximise\n")
    ask("tune", "create", "rate.yaml")
    complaint = ask("tune", "import", "rate", str(RECORDINGS / "kernel_tuner/scale.json"))[2]
    assert "time was minimised, expected an objective that is maximised, as in study rate" in complaint
    assert trials(ask, "rate") == []


def test_a_database_is_named_by_url_and_its_password_is_not_shown(ask: Ask) -> None:
    path = (RECORDINGS / "optuna/optuna.db").absolute()
    assert ask("tune", "import", "optuna", f"sqlite:///{path}", "--of", "step-time")[0] == 0
    assert len(trials(ask, "optuna")) == 8
    complaint = ask("tune", "import", "optuna", "nosuch://me:secret@127.0.0.1:1/optuna")[2]
    assert "nosuch://me:***@127.0.0.1:1/optuna: " in complaint
    assert "secret" not in complaint


@pytest.mark.parametrize("form", ["optuna", "t4"])
def test_an_export_is_imported_as_it_was(ask: Ask, form: str) -> None:
    Path("old.csv").write_text(TABLE)
    ask("tune", "import", "table", "old.csv")
    Path("again.yaml").write_text(STUDY)
    ask("tune", "create", "again.yaml")
    Path("exported").write_text(ask("tune", "export", "table", "--format", form)[1])
    assert ask("tune", "import", "again", "exported")[0] == 0
    fields = ("configuration", "state", "objective")
    copied, kept = ([[trial[field] for field in fields] for trial in trials(ask, name)] for name in ("again", "table"))
    assert sorted(copied, key=str) == sorted(kept, key=str)
    assert len(kept) == 3


def test_points_for_ray_are_the_complete_trials(ask: Ask) -> None:
    Path("old.csv").write_text(TABLE)
    ask("tune", "import", "table", "old.csv")
    points = json.loads(ask("tune", "export", "table", "--format", "ray")[1])
    assert (points["metric"], points["mode"]) == ("loss", "min")
    assert sorted(points["evaluated_rewards"]) == [0.25, 0.5]
