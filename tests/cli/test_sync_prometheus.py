"""`crosswind sync prometheus URL` against a server that answers like Prometheus."""

import json
from pathlib import Path

import pytest
from tests.ingest.series.test_pull import answering, one_a_second

from crosswind.cli.main import main


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_PROMETHEUS_TOKEN", "a-token")
    for name in ("CROSSWIND_SPOOL", "CROSSWIND_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


def test_a_pull_says_what_it_stored_and_goes_on_from_there(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with answering(200, one_a_second) as (url, asked):
        arguments = ["sync", "prometheus", url, "--since", "2026-01-01T00:00:00", "--until", "2026-01-01T00:00:20"]
        assert main(arguments) == 0
        first = capsys.readouterr().out
        assert first.startswith(f"{url}: 20 samples of ")
        assert " as 20 rows, " in first
        assert main([*arguments, "--json"]) == 0
        again = json.loads(capsys.readouterr().out)
        assert (again["windows"], again["samples"]) == (0, 0)
        assert again["notes"] == ["goes on where it was: --since counts for the first pull alone"]
        assert {token for *_, token in asked} == {"Bearer a-token"}
        assert home.is_dir()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("prometheus",), "prometheus: expected one URL behind it, such as http://host:9090"),
        (("prometheus", "host:9090"), "'host:9090': expected the URL of a Prometheus, such as http://host:9090"),
        (("prometheus", "http://h:1", "--to", "http://s"), "--to: samples are stored here"),
        (("prometheus", "http://h:1", "--every", "1"), "--every 1: expected 5 seconds or more"),
        (("prometheus", "http://h:1", "--step", "0.1"), "--step 0.1: expected 1 to 86400 seconds"),
        (("prometheus", "http://h:1", "--since", "tomorrow"), "--since 'tomorrow': expected a time such as"),
        (("prometheus", "http://h:1", "--until", "later"), "--until 'later': expected a time such as"),
        (("slurm", "--match", "up"), "--match is for `crosswind sync prometheus URL`"),
        ((".", "--step", "5"), "--step is for `crosswind sync prometheus URL`"),
    ],
)
def test_what_makes_no_sense_is_refused(
    home: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert main(["sync", *words]) == 2
    assert said in capsys.readouterr().err
    assert not home.exists()
