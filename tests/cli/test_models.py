import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.models.registry.models import poor, train, trained

from crosswind.cli.main import main
from crosswind.cli.verbs.models.actions import train as train_here
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.store.store import Store
from crosswind.models.baseline import Ewma
from crosswind.models.registry.registry import Registry
from crosswind.models.registry.trainer import Trained, Trainer
from crosswind.models.training.operations import Runner

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CROSSWIND_DATABASE", raising=False)
    return tmp_path / "home"


@pytest.fixture
def ask(home: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    def ask(*words: str) -> tuple[int, str, str]:
        code = main(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return ask


@pytest.fixture
def versions(home: Path) -> Path:
    """Two versions that beat the baselines, and a third that does not."""
    evidence = trained().evidence
    with Store.open(home) as store:
        for version_evidence in (evidence, evidence, poor(evidence)):
            Registry(store).register("step-time", Ewma(), version_evidence)
    return home


def test_versions_are_listed_beside_their_best_baseline(ask: Ask, versions: Path) -> None:
    code, said, _ = ask("models")
    heading, *lines = said.splitlines()
    assert code == 0
    assert heading.split()[:3] == ["model", "version", "state"]
    assert [line.split()[:3] for line in lines] == [["step-time", str(n), "candidate"] for n in (3, 2, 1)]
    assert "always_median" in lines[2]
    assert "-100 %" in lines[0]  # half the loss was enough for the baseline
    assert [entry["version"] for entry in json.loads(ask("models", "step-time", "--json")[1])] == [3, 2, 1]


def test_a_version_is_promoted_and_taken_back(ask: Ask, versions: Path) -> None:
    assert ask("models", "promote", "step-time", "1") == (
        0,
        "version 1 of step-time answers now: it beats every baseline\n",
        "",
    )
    assert ask("models", "promote", "step-time", "2", "--json")[0] == 0
    code, said, _ = ask("models", "rollback", "step-time", "--because", "too slow")
    assert (code, said) == (0, "version 1 of step-time answers again: version 2 was taken back: too slow\n")


def test_what_does_not_beat_the_baselines_needs_a_reason(ask: Ask, versions: Path) -> None:
    code, said, complaint = ask("models", "promote", "step-time", "3")
    assert (code, said) == (2, "")
    assert "expected less than last's" in complaint
    code, said, _ = ask("models", "promote", "step-time", "3", "--because", "other rows", "--json")
    assert (code, json.loads(said)["note"]) == (0, "forced: other rows")


def test_without_any_model_it_says_how_to_get_one(ask: Ask) -> None:
    code, said, _ = ask("models")
    assert (code, said) == (0, "No model is registered yet: crosswind models train NAME makes one.\n")
    assert json.loads(ask("models", "--json")[1]) == []


def test_a_model_is_trained_here_and_now(home: Path, ask: Ask, capsys: pytest.CaptureFixture[str]) -> None:
    with Store.open(home) as store:
        assert train_here(store, "step-time", {"step-time": Trainer(train)}) == 0
        expected = "version 1 of step-time is promoted: it beats every baseline; next: crosswind models step-time\n"
        assert capsys.readouterr().out == expected
        assert train_here(store, "step-time", {"step-time": Trainer(train)}, as_json=True) == 0
        assert json.loads(capsys.readouterr().out)["result"]["version"] == 2
    assert "promoted *" in ask("models", "step-time")[1]


def test_a_training_that_fails_is_reported_with_exit_code_1(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(_: Store) -> Trained:
        raise InvalidInputError("3 rows, expected at least 20")

    with Store.open(home) as store:
        assert train_here(store, "step-time", {"step-time": Trainer(refuse)}) == 1
    assert capsys.readouterr().out == "step-time was not trained: 3 rows, expected at least 20\n"


def test_a_cluster_without_dask_says_what_to_install(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("crosswind.models.training.cluster.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, said, complaint = ask("models", "train", "run_seconds", "--cluster", "local")
    assert (code, said) == (75, "")
    assert "--cluster needs Dask: pip install 'crosswind[dask]'" in complaint


def test_jobs_are_not_trained_on_a_cluster(ask: Ask) -> None:
    code, said, _ = ask("models", "train", "job_seconds", "--cluster", "local")
    assert (code, said.split(": ")[1]) == (1, "--cluster with job_seconds")


def test_a_training_that_another_process_does_is_try_later(home: Path) -> None:
    with Store.open(home) as store:
        trainers = {"step-time": Trainer(train)}
        asked = Runner(store, trainers).ask("step-time")
        far_ns = 2**62
        with store.catalog.write() as session:
            session.operations.claim("somebody", now_ns=0, lease_until_ns=far_ns, names=["step-time"])
        with pytest.raises(UnavailableError, match=f"operation {asked.operation_id} trains step-time in another"):
            train_here(store, "step-time", trainers)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nobody",), "model 'nobody'"),
        (("promote", "step-time", "9"), "version 9"),
        (("promote", "step-time", "-"), "version '-': expected a whole number"),
        (("promote", "step-time", "²"), "expected a whole number"),
        (("promote", "step-time"), "expected [NAME] | promote NAME VERSION"),
        (("rollback", "step-time"), "reason '': expected 1 to 1000 characters"),
        (("rollback", "step-time", "--because", "x"), "no version that was promoted before"),
        (("train", "nobody"), "model 'nobody' has no trainer"),
        (("fly", "step-time"), "models fly step-time: expected"),
        (("train", "run_seconds", "--cluster", "node1:8786"), "'node1:8786': expected local, slurm, or the address of"),
        (("train", "nobody", "--cluster", "local"), "model 'nobody' has no trainer"),
        (("promote", "step-time", "1", "--cluster", "local"), "--cluster 'local': expected with train NAME alone"),
        (("train", "run_seconds", "--leave-out-damaged"), "--leave-out-damaged: expected with --cluster alone"),
    ],
)
def test_wrong_words_are_exit_code_2_and_change_nothing(
    ask: Ask, versions: Path, words: tuple[str, ...], message: str
) -> None:
    before = ask("models", "--json")
    code, said, complaint = ask("models", *words)
    assert (code, said) == (2, "")
    assert message in complaint
    assert ask("models", "--json") == before
