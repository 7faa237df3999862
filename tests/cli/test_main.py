import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import crosswind
from crosswind.cli.main import VERBS, Verb, build_parser, main
from crosswind.cli.text import output
from crosswind.data.schema.run import Run, RunState

PROGRAM = [sys.executable, "-m", "crosswind.cli.main"]
TELLS = [*PROGRAM, "run", "--no-ingest", "--no-agent", "--json", "--", "true"]  # without heavy modules


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CROSSWIND_SPOOL", raising=False)
    monkeypatch.delenv("CROSSWIND_DATABASE", raising=False)
    return tmp_path / "home"


def code_of(*words: str) -> int | str | None:
    try:
        return main(words)
    except SystemExit as left:  # argparse
        return left.code


def test_help_names_every_verb_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of("--help") == 0
    printed = capsys.readouterr().out
    words = " ".join(printed.split())
    for verb in VERBS:
        assert f"{verb.name} {verb.help}" in words


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS])
def test_every_verb_is_there_with_help_and_json(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert find_spec(Verb(verb, "").module) is not None
    assert code_of(verb, "--help") == 0
    assert "--json" in capsys.readouterr().out


def test_only_the_named_verb_has_arguments() -> None:
    with pytest.raises(SystemExit):
        build_parser(None).parse_args(["runs", "--limit", "3"])
    assert build_parser("runs").parse_args(["runs", "--limit", "3"]).limit == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--json",), "arguments are required: VERB"),
        (("fly",), "invalid choice: 'fly'"),
        (("runs", "--limit", "many"), "invalid int value: 'many'"),
        (("runs", "--limit", "0"), "--limit 0: expected 1 or more"),
        (("runs", "--state", "asleep"), "invalid choice: 'asleep'"),
        (("nodes", "n1", "stray"), "unrecognized arguments: stray"),
        (("run",), "expected a program after --"),
        (("run", "--tag", "novalue", "--", "true"), "--tag 'novalue': expected NAME=VALUE"),
        (("run", "--interval", "0", "--", "true"), "interval 0.0 s: expected 0.01 to 3600.0 s"),
        (("ingest", "--format", "tea-leaves", "/etc/passwd"), "format 'tea-leaves' is not known"),
    ],
)
def test_wrong_words_are_exit_code_2_and_named(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of(*words) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.out == ""


@pytest.mark.parametrize(
    ("database", "code", "message"),
    [
        ("mysql://root@localhost/x", 2, "expected sqlite or postgresql"),
        ("not a url", 2, "expected a URL such as sqlite:"),
        ("sqlite:////proc/nowhere/catalog.sqlite", 75, "does not open"),
    ],
)
def test_a_database_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], database: str, code: int, message: str
) -> None:
    monkeypatch.setenv("CROSSWIND_DATABASE", database)
    assert code_of("runs") == code
    assert message in capsys.readouterr().err


def test_a_store_that_cannot_be_made_is_try_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "file" / "home"))
    assert code_of("runs") == 75
    assert f"store folder {tmp_path}/file/home cannot be made" in capsys.readouterr().err


@pytest.mark.parametrize(("verb", "extra"), [("ingest", "server"), ("lab", "lab")])
def test_without_the_servers_modules_a_verb_says_what_to_install(tmp_path: Path, verb: str, extra: str) -> None:
    words = [verb, "faults"] if verb == "lab" else [verb]
    (tmp_path / "sqlalchemy.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'sqlalchemy'\", name='sqlalchemy')"
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([*PROGRAM, *words], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"crosswind: {verb} needs sqlalchemy: pip install 'crosswind[{extra}]'\n"


def test_a_reader_that_leaves_is_no_error(home: Path) -> None:
    with subprocess.Popen(TELLS, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert (process.wait(), process.stderr.read()) == (0, b"")


def test_the_version_is_that_of_the_package() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'version = "{crosswind.__version__}"' in text


def test_json_has_no_nan_no_infinity_and_no_foreign_types(capsys: pytest.CaptureFixture[str]) -> None:
    value = {
        1: float("nan"),
        "paths": [Path("/a")],
        "set": {5},
        "run": Run("r", "w", "s", RunState.LOST),
        "x": float("inf"),
    }
    output.say_json(value)
    answer = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (answer["1"], answer["paths"], answer["set"], answer["x"]) == (None, ["/a"], [5], None)
    assert (answer["run"]["run_id"], answer["run"]["state"]) == ("r", "lost")


def test_a_table_has_numbers_to_the_right_and_obeys_no_cell() -> None:
    printed = output.table(("name", "steps"), [("a", "12"), ("evil\x1b[2J\n", "7"), ("ünï", "-")])
    assert printed.splitlines() == [
        "name       steps",
        "a             12",
        "evil?[2J?      7",
        "ünï        -",
    ]


def test_a_full_disk_is_said_and_not_traced(home: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(TELLS, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "crosswind: run: [Errno 28] No space left on device\n")
