"""`crosswind trace diff`: words, JSON, a page, and clear refusals."""

import json
from pathlib import Path

import pytest

from crosswind.cli.main import main


def trace(folder: Path, name: str, kernel_us: int) -> Path:
    """Write a trace of four steps with one kernel each."""
    events = [
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": f"ProfilerStep#{step}",
            "pid": 1,
            "tid": 1,
            "ts": 1000 * step,
            "dur": 1000,
        }
        for step in range(4)
    ]
    events += [
        {
            "ph": "X",
            "cat": "kernel",
            "name": "gemm",
            "pid": 0,
            "tid": 7,
            "ts": 1000 * step + 10,
            "dur": kernel_us + step % 2,
        }
        for step in range(4)
    ]
    path = folder / name
    path.write_text(
        json.dumps(
            {
                "schemaVersion": 1,
                "deviceProperties": [],
                "distributedInfo": {"rank": 0, "world_size": 1},
                "traceEvents": events,
            }
        )
    )
    return path


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "store"))
    return [str(trace(tmp_path, "a.json", 100)), str(trace(tmp_path, "b.json", 300))]


def test_difference_in_words_and_as_a_page(pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "diff", *pair, "--html", str(tmp_path / "page.html")]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines[0].startswith("No sure difference: B's step is ")  # of the same length: more work, and less idle time
    assert any(line.startswith("gemm slower") for line in lines)
    assert any(line.startswith("sum = B - A") for line in lines)
    assert "gemm slower" in (tmp_path / "page.html").read_text()


def test_difference_as_json(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "diff", *pair, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert sum(part["seconds"]["value"] for part in answer["parts"]) == pytest.approx(
        answer["seconds"]["value"], abs=1e-9
    )
    assert answer["parts"][0]["seconds"]["value"] == pytest.approx(200e-6, rel=0.01)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a.json"], "1 of A and B are given; expected two files, folders or runs"),
        (["a.json", "none.json"], "none.json: no such file or folder"),
        (["./a.json", "b.json", "c.json"], "3 of A and B are given"),
        (["somerun", "another"], "somerun"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    words: list[str],
    message: str,
    pair: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["trace", "diff", *words]) != 0
    assert message in capsys.readouterr().err
