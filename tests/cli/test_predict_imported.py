"""`crosswind predict` over runs that `crosswind ingest` stored from other tools' logs."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.cli.asking import asking

Verb = Callable[..., tuple[int, str, str]]
START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
BATCHES = (16, 32, 64)
ASKED = ("predict", "--workload", "resnet", "--system", "lab", "--config", "global_batch_size=32")


@pytest.fixture
def verb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Verb:
    """Return the exit code and both outputs of a verb over an empty store."""
    for name in ("CROSSWIND_SERVER", "CROSSWIND_TOKEN", "CROSSWIND_TOKEN_FILE", "CROSSWIND_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_SYSTEM", "lab")
    return asking(capsys)


def event(ms: int, key: str, value: object = None, **metadata: object) -> str:
    fields = {"namespace": "", "time_ms": ms, "event_type": "POINT_IN_TIME", "key": key, "value": value}
    return f":::MLLOG {json.dumps({**fields, 'metadata': metadata})}\n"


def log(place: int, ranks: int, seconds: float, parameters: Mapping[str, object]) -> str:
    """One run in MLPerf's format, which began `place` hours after the first."""
    start = START_MS + place * HOUR_MS
    facts = {"submission_benchmark": "resnet", "number_of_ranks": ranks, **parameters}
    return "".join(
        (
            event(start, "init_start"),
            *(event(start, key, value) for key, value in facts.items()),
            event(start, "run_start"),
            event(start + round(seconds * 1000), "run_stop", status="success"),
        )
    )


def milestones_in_the_newest_runs(folder: Path) -> Path:
    """Three batches on 1 to 8 ranks, seconds being batch / ranks^0.8; the runs on 8 log a list, the others do not."""
    folder.mkdir()
    kinds = [(ranks, batch) for ranks in (1, 2, 4, 8) for batch in BATCHES]
    for place, (ranks, batch) in enumerate(kinds):
        stepped: dict[str, object] = {"scheduler_milestones": [800]} if ranks == 8 else {}
        parameters = {"global_batch_size": batch, **stepped}
        (folder / f"result_{place}.txt").write_text(log(place, ranks, 10 * batch / ranks**0.8, parameters))
    return folder


def test_a_text_that_only_the_newest_runs_have_is_learned_from(verb: Verb, tmp_path: Path) -> None:
    assert verb("ingest", str(milestones_in_the_newest_runs(tmp_path / "logs")))[0] == 0
    stepped = ("--config", "scheduler_milestones=[800]")
    code, said, complaint = verb(*ASKED, *stepped, "--ranks", "16", "--json")
    assert (code, complaint) == (0, "")
    answer = json.loads(said)
    assert (answer["basis"], answer["runs"]) == ("workload", 12)
    # Half of the ranks take 61 s by the law; the band is wide, so the test only refuses what forgets the scale.
    assert 15 < answer["quantiles"][3]["seconds"] < 61


def test_a_text_that_never_ran_is_asked_about_too(verb: Verb, tmp_path: Path) -> None:
    verb("ingest", str(milestones_in_the_newest_runs(tmp_path / "logs")))
    for milestones in ("[100,200]", "800"):
        code, said, _ = verb(*ASKED, "--config", f"scheduler_milestones={milestones}", "--ranks", "8")
        assert code == 0
        assert "scheduler_milestones is " in said.replace("\n  ", " ")


def test_a_model_is_trained_on_runs_of_which_some_have_a_text(verb: Verb, tmp_path: Path) -> None:
    folder = milestones_in_the_newest_runs(tmp_path / "logs")
    for place in range(12, 36):
        parameters = {"global_batch_size": BATCHES[place % 3], "scheduler_milestones": [100 * place]}
        (folder / f"result_{place}.txt").write_text(log(place, 8, 10.0 + place % 3, parameters))
    verb("ingest", str(folder))
    code, said, complaint = verb("models", "train", "run_seconds")
    assert (code, complaint) == (0, "")
    assert "version 1 of run_seconds" in said
