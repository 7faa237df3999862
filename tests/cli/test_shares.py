"""`crosswind shares`, by the store at hand and through a server."""

import json
from pathlib import Path

import pytest
from tests.cli.asking import Ask, asking
from tests.models.advice.measured_ranks import store_run
from tests.serving import answering


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two ranks, of which the second is half as fast."""
    home = tmp_path_factory.mktemp("measured") / "home"
    store_run(home, [1.0, 2.0], {"batch": 15})
    return home


@pytest.fixture
def ask(measured: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    for name in ("CROSSWIND_SERVER", "CROSSWIND_TOKEN", "CROSSWIND_TOKEN_FILE", "CROSSWIND_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(measured))
    return asking(capsys)


def test_ranks_are_rows_and_the_gain_stands_below(ask: Ask) -> None:
    code, said, _ = ask("shares", "measured", "--batch", "30")
    assert code == 0
    assert ask("shares", "latest", "--batch", "30") == (0, said, "")
    lines = said.splitlines()
    assert lines[0].split() == ["rank", "node", "computes", "samples", "now", "of", "30", "would", "compute"]
    assert lines[1].split() == ["0", "n0", "100", "ms", "15", "20", "133", "ms"]
    assert lines[2].split() == ["1", "n1", "200", "ms", "15", "10", "133", "ms"]
    assert lines[4] == ("gain: +31.7% [+31.7% .. +31.7%] of the step, 210 ms with equal shares and 143 ms with these")
    assert lines[5] == "from: 100 steps at 30 samples (batch x 2 ranks)"
    assert lines[6].startswith("warning: compute seconds are taken to grow in proportion to samples")


@pytest.mark.thorough
def test_both_doors_tell_the_same(ask: Ask, measured: Path) -> None:
    words = ("shares", "measured", "--batch", "64", "--now-batch", "40", "--json")
    here = json.loads(ask(*words)[1])
    with answering(measured) as server:
        there = json.loads(ask(*words, "--server", server)[1])
        code, _, complaint = ask("shares", "nosuch", "--batch", "64", "--server", server)
    assert here == there
    assert here["now_batch"] == 40
    assert (code, "run 'nosuch' is not stored" in complaint) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("measured", "--batch", "1"), "batch 1: expected 2, one for each rank"),
        (("measured", "--batch", "many"), "invalid int value: 'many'"),
        (("measured", "--now-batch", "0"), "now_batch 0: expected 2"),
        (("nothing", "--batch", "8"), "'nothing' is not stored"),
        ((), "the following arguments are required: RUN"),
    ],
)
def test_what_cannot_be_shared_is_refused(ask: Ask, words: tuple[str, ...], message: str) -> None:
    code, said, complaint = ask("shares", *words)
    assert (code, said) == (2, "")
    assert message in complaint
