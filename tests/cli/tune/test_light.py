"""Verbs that a job script calls between two runs load little: the standard library, or SQLAlchemy for the store."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import json, sys
from crosswind.cli.main import main
code = main(json.loads(sys.argv[1]))
heavy = {"numpy", "sqlalchemy", "scipy", "sklearn", "pandas", "duckdb", "pyarrow", "crosswind.data.lake.lake"}
print("code", code, *sorted(heavy & sys.modules.keys()), file=sys.stderr)
"""


def loaded(*words: str, home: Path | None = None) -> list[str]:
    """The exit code of `crosswind tune`, and which heavy modules it loaded."""
    environment = {"CROSSWIND_HOME": str(home), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", CODE, json.dumps(["tune", *words])]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return ended.stderr.splitlines()[-1].split()[1:]


def test_next_through_a_server_loads_nothing_heavy(tmp_path: Path) -> None:
    assert loaded("next", "s", "--server", "http://127.0.0.1:9", home=tmp_path) == ["75"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the study `s`, of which one trial is begun."""
    folder = tmp_path_factory.mktemp("light")
    path = folder / "s.json"
    path.write_text(json.dumps({"a": {"kind": "int", "low": 1, "high": 100}}))
    assert loaded("create", "s", str(path), "--objective", "loss", home=folder / "home")[0] == "0"
    return folder / "home"


def test_a_study_s_first_trials_need_numpy_alone(home: Path) -> None:
    assert loaded("next", "s", home=home) == ["0", "numpy", "sqlalchemy"]


@pytest.mark.parametrize("words", [("status", "s"), ("list",), ("export", "s"), ("beat", "s", "none"), ("show", "s")])
def test_a_look_at_a_study_loads_sqlalchemy_alone(home: Path, words: tuple[str, ...]) -> None:
    assert loaded(*words, home=home)[1:] == ["sqlalchemy"]
