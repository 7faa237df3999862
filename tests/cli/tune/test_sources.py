"""Sources of studies as `crosswind tune` says them, of the local store, of a shared folder and of a server."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serving import answering

from crosswind.cli.main import main

STUDY = """
objective: run_time
parameters:
  batch: {kind: ordinal, values: [1, 2, 4, 8, 16]}
  threads: {kind: int, low: 1, high: 8}
"""
DETAILS = "details: {{workload: {workload}, system: B, world_size: 16}}\n"
WHY = "2 of 2 parameters, 6 configurations, system B at 16 ranks"
Said = tuple[str, str]


class Tune:
    """Runs actions in this process on studies of one place."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder, self._capsys = folder, capsys

    def __call__(self, *words: str, code: int = 0) -> Said:
        """Standard output and standard error."""
        assert main(["tune", *words]) == code
        return tuple(self._capsys.readouterr())

    def create(self, name: str, *words: str, workload: str = "gpt", more: str = "", code: int = 0) -> Said:
        path = self._folder / f"{name}.yaml"
        path.write_text(STUDY + (DETAILS.format(workload=workload) if workload else "") + more)
        return self("create", str(path), *words, code=code)

    def trial(self, name: str) -> str:
        """One more trial; what its suggestion said on standard error."""
        said, complained = self("next", name, "--json")
        [record] = json.loads(said)
        configuration = record["configuration"]
        self("tell", name, record["trial_id"], str(configuration["threads"] + configuration["batch"]))
        return complained


@pytest.fixture(params=["store", "server", pytest.param("folder", marks=pytest.mark.thorough)])
def tune(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Tune]:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CROSSWIND_SERVER", raising=False)
    monkeypatch.delenv("CROSSWIND_TUNE_FOLDER", raising=False)
    if request.param == "folder":
        monkeypatch.setenv("CROSSWIND_TUNE_FOLDER", str(tmp_path / "studies"))
    if request.param != "server":
        yield Tune(tmp_path, capsys)
        return
    with answering(tmp_path / "server") as url:
        monkeypatch.setenv("CROSSWIND_SERVER", url)
        yield Tune(tmp_path, capsys)


def test_create_the_first_answer_and_status_say_the_sources(tune: Tune) -> None:
    assert tune.create("first")[0].startswith("sources: none\nstudy first is ")
    tune.create("wrong", "--sources", "none", workload="cnn")
    for _ in range(6):
        assert tune.trial("first") == ""
        tune.trial("wrong")
    created = tune.create("second")[0]
    assert created.startswith(
        "sources that the study learns from:\n"
        f"  study first: same workload, {WHY}\n"
        "left out:\n"
        "  study wrong: another workload: cnn\n"
        "study second is "
    )
    weighed = f"  study first: weight 1.00, same workload, {WHY}\n  the study's own trials: weight 0.00\n"
    assert weighed in tune.trial("second")
    assert tune.trial("second") == ""
    said = tune("status", "second")[0]
    assert weighed in said
    assert "  study wrong: another workload: cnn\n" in said
    assert weighed in tune("show", "second")[0]
    status = json.loads(tune("status", "second", "--json")[0])
    assert [trial["weights"] for trial in status["trials"]] == [{"study first": 1.0, "own": 0.0}] * 2
    used = [{"name": "study first", "why": f"same workload, {WHY}", "weight": 1.0}]
    assert (status["sources"]["used"], status["sources"]["own_weight"]) == (used, 0.0)


def test_the_first_suggestion_behind_the_start_says_the_sources(tune: Tune) -> None:
    tune.create("first")
    for _ in range(4):
        tune.trial("first")
    tune.create("second", more="start: [{batch: 16, threads: 8}]\n")
    assert tune.trial("second") == ""
    assert "  study first: weight 1.00, same workload, " in tune.trial("second")


def test_a_program_with_the_same_names_of_parameters_is_no_source(tune: Tune) -> None:
    tune.create("other", workload="")
    for _ in range(4):
        tune.trial("other")
    created = tune.create("mine", workload="")[0]
    assert created.startswith(
        "sources: none\nleft out:\n  study other: no workload or command in common: only the space is alike\n"
        "one of these is of the same program? "
    )
    assert tune.create("other-2", workload="")[0].startswith(
        "sources that the study learns from:\n  study other: same objective, values and name, "
    )


def test_named_sources_are_used_though_they_would_not_be_chosen(tune: Tune) -> None:
    tune.create("wrong", workload="cnn")
    tune.create("empty", workload="cnn")
    for _ in range(6):
        tune.trial("wrong")
    created = tune.create("line", "--sources", "empty, wrong")[0]
    assert created.startswith(
        "sources that the study learns from:\n"
        f"  study wrong: named, {WHY}\n"
        "left out:\n"
        "  study empty: 0 of 0 trials measured in this space, expected 3\n"
    )
    assert tune.create("file", more="sources: [wrong]\n")[0].startswith(
        f"sources that the study learns from:\n  study wrong: named, {WHY}\nstudy file is "
    )
    assert tune.create("over", "--sources", "none", more="sources: [wrong]\n")[0].startswith(
        "sources: none, as the study says\n"
    )
    assert tune.trial("over") == ""
    assert "sources: none, as the study says\n" in tune("status", "over")[0]


def test_a_name_that_is_no_study_is_refused_with_near_ones(tune: Tune) -> None:
    tune.create("gemm-large")
    complained = tune.create("mine", "--sources", "gemm-lage", code=2)[1]
    assert "sources: there is no study 'gemm-lage'; near it are gemm-large" in complained
    tune("status", "mine", code=2)
    assert "expected auto, none or a list" in tune.create("mine", more="sources: gemm-large\n", code=2)[1]


def test_a_study_that_cannot_be_read_is_said_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CROSSWIND_TUNE_FOLDER", str(tmp_path / "studies"))
    tune = Tune(tmp_path, capsys)
    tune.create("broken")
    [file] = (tmp_path / "studies").glob("*/study.json")
    file.write_text("{")
    created = tune.create("mine")[0]
    assert f"left out:\n  study in {file.parent.name}: cannot be read: {file}: expected a study" in created
    tune.trial("mine")
    assert f"  study in {file.parent.name}: cannot be read: " in tune("status", "mine")[0]
