import json
import os
from pathlib import Path

import pytest
from tests.cli.asking import Ask, asking

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    return asking(capsys)


@pytest.mark.parametrize(
    ("what", "files"),
    [
        ("agent", ["agent.toml"]),
        ("slurm", ["prolog.sh", "epilog.sh"]),
        ("systemd", ["crosswind-agent.service"]),
        ("grafana", ["datasource.yaml", "dashboards.yaml"]),
    ],
)
def test_files_are_written_as_they_are_in_the_repository(what: str, files: list[str], ask: Ask, tmp_path: Path) -> None:
    code, said, _ = ask("deploy", what, "--into", str(tmp_path / "out"))
    assert code == 0
    for name in files:
        [original] = DEPLOY.rglob(name)
        assert (tmp_path / "out" / name).read_text() == original.read_text()
        assert os.access(tmp_path / "out" / name, os.X_OK) == name.endswith(".sh")
        assert f"{tmp_path}/out/{name} /etc/" in said


def test_the_dashboard_goes_where_its_provider_looks(ask: Ask) -> None:
    files = {file["name"]: file for file in json.loads(ask("deploy", "grafana", "--json")[1])}
    folder = str(Path(files["dashboard.json"]["place"]).parent)
    assert f"path: {folder}\n" in files["dashboards.yaml"]["content"]


def test_what_is_printed_is_the_file_and_nothing_else(ask: Ask) -> None:
    assert ask("deploy", "agent", "--print") == (0, (DEPLOY / "agent.toml").read_text(), "")
    _, both, _ = ask("deploy", "slurm", "--print")
    assert both.index("# prolog.sh\n#!/bin/sh") < both.index("# epilog.sh\n#!/bin/sh")
    assert [file["name"] for file in json.loads(ask("deploy", "slurm", "--json")[1])] == ["prolog.sh", "epilog.sh"]


def test_without_an_option_it_says_where_the_files_go(ask: Ask) -> None:
    _, said, _ = ask("deploy", "slurm")
    assert "crosswind deploy slurm --print prints, and --into DIR writes" in said
    assert "install -D -m 0755 DIR/prolog.sh /etc/slurm/crosswind-prolog.sh" in said


def test_no_file_is_replaced(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text("mine")
    code, _, complaint = ask("deploy", "agent", "--into", str(tmp_path))
    assert (code, (tmp_path / "agent.toml").read_text()) == (2, "mine")
    assert f"{tmp_path}/agent.toml: is there already: expected a folder without it" in complaint


def test_an_unknown_kind_is_refused(ask: Ask) -> None:
    code, _, complaint = ask("deploy", "ansible")
    assert code == 2
    assert "'ansible'" in complaint
