"""The plain installation: there are no packages beside ours and the standard library."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from crosswind.cli.main import VERBS

SOURCES = Path(__file__).parents[2] / "src"
HELP = """
import contextlib, io, json
from crosswind.cli.main import VERBS, main
said = {}
for verb in VERBS:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        main([verb.name, "--help"])
    said[verb.name] = out.getvalue()
print(json.dumps(said))
"""
ASK = "import sys\nfrom crosswind.cli.main import main\nsys.exit(main(sys.argv[1:]))"


def plain(code: str, *words: str, home: Path, server: str = "") -> "subprocess.CompletedProcess[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CROSSWIND_")}
    environment = kept | {"CROSSWIND_HOME": str(home), "CROSSWIND_SERVER": server, "PYTHONPATH": str(SOURCES)}
    command = [sys.executable, "-S", "-c", code, *words]  # -S: no site-packages
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_every_verb_has_its_help(tmp_path: Path) -> None:
    done = plain(HELP, home=tmp_path)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said.keys() == {verb.name for verb in VERBS}
    for verb in VERBS:
        assert said[verb.name].startswith(f"usage: crosswind {verb.name}"), verb.name
        assert "--json" in said[verb.name]
    assert "--since" in said["nodes"]
    assert "--map" in said["ingest"] or "--format" in said["ingest"]


@pytest.mark.parametrize("words", [("completion", "bash"), ("deploy", "agent", "--print"), ("--version",), ()])
def test_what_needs_no_store_works(words: tuple[str, ...], tmp_path: Path) -> None:
    done = plain(ASK, *words, home=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_bare_it_says_that_it_records_and_how_to_get_the_rest(tmp_path: Path) -> None:
    said = plain(ASK, home=tmp_path).stdout
    assert f"it records into {tmp_path}/spool" in said
    assert "pip install 'crosswind[server]'" in said


@pytest.mark.parametrize(
    "words",
    [
        *(("runs",), ("show", "toy-03"), ("explain", "toy-03"), ("nodes",), ("jobs",), ("job", "3")),
        ("sql", "select count(*) as runs from runs", "--csv"),
    ],
)
def test_a_server_answers_the_verbs_of_stored_runs_and_jobs(
    words: tuple[str, ...], home_to_ask: Path, server_to_ask: str, tmp_path: Path
) -> None:
    asked = plain(ASK, *words, home=tmp_path, server=server_to_ask)
    assert (asked.returncode, asked.stderr) == (0, "")
    assert not list(tmp_path.iterdir())
