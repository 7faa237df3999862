"""Exports that the real Optuna, Ray Tune and Kernel Tuner take, and imports of what the real Optuna keeps."""

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from tests.cli.asking import Ask, asking

optuna = pytest.importorskip("optuna", reason="needs make peers: no optuna")
pytestmark = [pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]  # Ray's and Kernel Tuner's own

STUDY = """
objective: loss
direction: maximise
parameters:
  batch: {kind: int, low: 1, high: 64, log: true}
  lr: {kind: float, low: 0.00001, high: 0.1, log: true}
  layers: {kind: ordinal, values: [2, 4, 6]}
  drop: {kind: ordinal, values: [0.0, 0.1, 0.2, 0.3]}
  mode: {kind: categorical, values: [fast, slow]}
  pin: {kind: boolean}
"""
ENDS = ("0.5", "0.25", "--failed=no room", "--infeasible=too large", "--pruned=slow", "0.75", "")
PLACES = ("sqlite", "postgresql")


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    for name in ("CROSSWIND_SERVER", "CROSSWIND_TUNE_FOLDER", "CROSSWIND_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return asking(capsys)


@pytest.fixture
def study(ask: Ask) -> str:
    """A study with a trial in every state, and an empty one of the same kind, `again`."""
    for name in ("ddp", "again"):
        Path(f"{name}.yaml").write_text(STUDY)
        assert ask("tune", "create", f"{name}.yaml")[0] == 0
    for place, end in enumerate(ENDS):
        [trial] = json.loads(ask("tune", "next", "ddp", "--slot", str(place), "--json")[1])
        if end:
            assert ask("tune", "tell", "ddp", trial["trial_id"], end)[0] == 0
    return "ddp"


def trials(ask: Ask, name: str) -> list[dict[str, object]]:
    records: list[dict[str, object]] = json.loads(ask("tune", "export", name, "--format", "json")[1])
    return [
        {name: row[name] for name in row if name not in ("trial_id", "owner", "run_id", "reason")} for row in records
    ]


@pytest.fixture
def journal(ask: Ask, study: str) -> "optuna.storages.JournalStorage":
    Path("ddp.log").write_text(ask("tune", "export", "ddp", "--format", "optuna")[1])
    backend = optuna.storages.journal.JournalFileBackend("ddp.log")
    return optuna.storages.JournalStorage(backend)


def test_optuna_opens_an_export_with_the_same_trials(ask: Ask, study: str, journal: object) -> None:
    theirs, ours = optuna.load_study(study_name=None, storage=journal), trials(ask, "ddp")
    assert theirs.direction.name == "MAXIMIZE"
    assert theirs.metric_names == ["loss"]
    states = {"done": "COMPLETE", "failed": "FAIL", "infeasible": "FAIL", "pruned": "PRUNED", "leased": "RUNNING"}
    assert [trial.state.name for trial in theirs.trials] == [states[str(row["state"])] for row in ours]
    for trial, row in zip(theirs.trials, ours, strict=True):
        assert trial.params == {name: value for name, value in row.items() if name not in ("state", "loss")}
        assert trial.value == row["loss"]
    distributions = optuna.distributions
    assert theirs.trials[0].distributions == {
        "batch": distributions.IntDistribution(1, 64, log=True),
        "lr": distributions.FloatDistribution(1e-5, 0.1, log=True),
        "layers": distributions.IntDistribution(2, 6, step=2),
        "drop": distributions.FloatDistribution(0.0, 0.3, step=0.1),
        "mode": distributions.CategoricalDistribution(["fast", "slow"]),
        "pin": distributions.CategoricalDistribution([False, True]),
    }
    assert theirs.best_value == 0.75


def test_optuna_goes_on_with_an_export(journal: object) -> None:
    theirs = optuna.load_study(study_name=None, storage=journal, sampler=optuna.samplers.TPESampler(n_startup_trials=1))
    kinds = theirs.trials[0].distributions
    trial = theirs.ask(kinds)
    theirs.tell(trial, 0.1)
    assert trial.number == len(ENDS)


@pytest.fixture(params=PLACES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'optuna.db'}"
    else:
        address: str = request.getfixturevalue("postgres_url")
        yield address.replace("postgresql:", "postgresql+pg8000:")


@pytest.mark.usefixtures("study")
def test_what_optuna_keeps_in_a_database_comes_back_as_it_was(ask: Ask, journal: object, url: str) -> None:
    optuna.copy_study(from_study_name="ddp", from_storage=journal, to_storage=url)
    code, said, complaint = ask("tune", "import", "again", url)
    assert (code, complaint) == (0, "")
    assert said.startswith("6 trials taken over into again, 0 do not fit")
    ended = [row for row in trials(ask, "ddp") if row["state"] != "leased"]
    assert sorted(trials(ask, "again"), key=str) == sorted(ended, key=str)


def test_a_database_that_does_not_answer_is_named_without_its_password(ask: Ask, study: str) -> None:
    code, _, complaint = ask("tune", "import", "again", "postgresql+pg8000://me:secret@127.0.0.1:1/optuna")
    assert code != 0
    assert "postgresql+pg8000://me:***@127.0.0.1:1/optuna: " in complaint
    assert "secret" not in complaint


@pytest.mark.usefixtures("study")
def test_kernel_tuner_s_schema_accepts_the_export_as_t4(ask: Ask) -> None:
    pytest.importorskip("kernel_tuner", reason="needs make peers: no kernel_tuner")
    version, schema = import_module("kernel_tuner.file_utils").output_file_schema("results")
    document = json.loads(ask("tune", "export", "ddp", "--format", "t4")[1])
    import_module("jsonschema").validate(document, schema)
    assert document["schema_version"] == version
    assert [result["invalidity"] for result in document["results"]] == [
        *("correct", "correct", "runtime", "constraints", "timeout", "correct")
    ]


def test_a_searcher_of_ray_starts_from_the_points_of_an_export(ask: Ask, study: str) -> None:
    pytest.importorskip("ray.tune", reason="needs make peers: no ray[tune]")
    points = json.loads(ask("tune", "export", "ddp", "--format", "ray")[1])
    kinds = optuna.distributions
    space = {
        "batch": kinds.IntDistribution(1, 64, log=True),
        "lr": kinds.FloatDistribution(1e-5, 0.1, log=True),
        "layers": kinds.IntDistribution(2, 6, step=2),
        "drop": kinds.FloatDistribution(0.0, 0.3, step=0.1),
        "mode": kinds.CategoricalDistribution(["fast", "slow"]),
        "pin": kinds.CategoricalDistribution([False, True]),
    }
    searcher = import_module("ray.tune.search.optuna").OptunaSearch(space, **points)
    assert [trial.value for trial in searcher._ot_study.trials] == [0.5, 0.25, 0.75]
    assert searcher.suggest("t0").keys() == space.keys()
