"""`crosswind run` through the door: what it writes down, and what the verbs after it say of that."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crosswind.cli.main import main
from crosswind.ingest.spool.collected import collecting
from crosswind.ingest.spool.spool import sealed_segments

CROSSWIND = (sys.executable, "-m", "crosswind.cli.main")
STEPS = r"step (?P<step>\d+) took (?P<ms>[\d.]+) ms"
TRAIN = 'n=0; while [ $n -lt 20 ]; do echo "step $n took ${MS:-5}.$n ms"; n=$((n+1)); done\n'
Verb = Callable[..., Any]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("CROSSWIND")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_SYSTEM", "lab")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.sh").write_text(TRAIN)
    return tmp_path / "home"


@pytest.fixture
def asked(home: Path, capsys: pytest.CaptureFixture[str]) -> Verb:
    def ask(*words: str) -> Any:
        assert main([*words, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    return ask


def run(*words: str, options: tuple[str, ...] = ()) -> int:
    return main(["run", "--no-agent", *options, "--", *words])


def test_twenty_nightly_runs_are_one_cohort_and_another_batch_size_is_another(home: Path, asked: Verb) -> None:
    for night in range(20):
        folder = home.parent / f"out-{night:02}"
        assert (
            run("sh", "train.sh", "--batch_size=8", f"--seed={night}", f"--out_dir={folder}", f"2026-11-{night + 1:02}")
            == 0
        )
    assert run("sh", "train.sh", "--batch_size=32", "--seed=0", "--out_dir=out-00") == 0
    cohorts = [line["cohort"] for line in asked("runs", "--limit", "30")]
    assert len(cohorts) == 21
    assert len(set(cohorts[1:])) == 1
    assert len(set(cohorts)) == 2


def test_a_comparison_says_what_differs_and_whether_that_makes_another_cohort(
    home: Path, asked: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    assert run("sh", "train.sh", "--batch_size=8", "--seed=1", options=("--step-lines", STEPS)) == 0
    monkeypatch.setenv("NCCL_ALGO", "Tree")
    monkeypatch.setenv("MS", "9")
    monkeypatch.setenv("NVIDIA_REQUIRE_CUDA", "cuda>=13.0 brand=tesla,driver>=535")  # of an image, kilobytes long
    assert run("sh", "train.sh", "--batch_size=32", "--seed=2", options=("--step-lines", STEPS)) == 0
    second, first = (line["run_id"] for line in asked("runs"))
    differing = asked("compare", first, second)["differing"]
    assert {name: set(values) for name, values in differing.items()} == {
        "config.batch_size": {"8", "32"},
        "argument.seed": {"1", "2"},
        "environment.NCCL_ALGO": {"Ring", "Tree"},
    }


def test_options_of_the_verb_override_the_rule(home: Path, asked: Verb) -> None:
    words = ("sh", "train.sh", "--seed=3", "--batch_size=8")
    assert run(*words, options=("--config", "precision=bf16", "--define", "seed", "--ignore", "batch*")) == 0
    assert asked("show")["run"]["configuration"] == {"precision": "bf16", "seed": 3}
    assert asked("show")["run"]["tags"]["argument.batch_size"] == "8"


@pytest.mark.parametrize("text", ["novalue", "=1"])
def test_a_parameter_without_name_or_value_is_refused(
    home: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert run("true", options=("--config", text)) == 2
    assert capsys.readouterr().err == f"crosswind: --config {text!r}: expected NAME=VALUE\n"


def test_a_configuration_file_counts_by_its_content(home: Path, asked: Verb) -> None:
    for content in ("lr: 1\n", "lr: 2\n"):
        Path("conf.yaml").write_text(content)
        assert run("sh", "train.sh", "--config", "conf.yaml") == 0
    shutil.copy("conf.yaml", "same.yaml")
    assert run("sh", "train.sh", "--config", "same.yaml") == 0
    cohorts = [line["cohort"] for line in asked("runs")]
    assert cohorts[0] == cohorts[1] != cohorts[2]


def test_no_secret_reaches_a_file(home: Path, asked: Verb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "abcd-from-environment")
    monkeypatch.setenv("NCCL_AUTH_KEY", "abcd-of-nccl")
    words = (
        "--api-key",
        "abcd-option",
        "--url=https://me:abcd-user@host/x",
        "abcd-from-environment",
        "token=abcd-pair",
    )
    code = "import sys; raise RuntimeError('401 for https://me:abcd-error@host and ' + sys.argv[3])"
    script = home.parent / "fails.py"
    script.write_text(code)
    assert run(sys.executable, str(script), *words, options=("--tag", "note=password=abcd-tag")) == 1
    written = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert b"RuntimeError: 401" in written
    assert b"abcd" not in written
    command = asked("show")["run"]["command"][2:]
    expected = ["--api-key", "[redacted]", "--url=https://[redacted]@host/x", "[redacted]", "token=[redacted]"]
    assert command == expected


def test_the_commit_and_whether_files_differ_from_it_are_recorded(home: Path, asked: Verb) -> None:
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "train.sh"), ("commit", "-qm", "first")):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert run("sh", "train.sh", "x=1") == 0
    Path("train.sh").write_text(TRAIN + "sleep 0.2\n")
    assert run("sh", "train.sh", "x=1") == 0
    lines = asked("runs")
    dirty, clean = (asked("show", line["run_id"])["run"]["tags"] for line in lines)
    assert (clean["git.commit"], clean["git.dirty"]) == (commit, "no")
    assert (dirty["git.commit"], dirty["git.dirty"]) == (commit, "yes")
    assert lines[0]["cohort"] == lines[1]["cohort"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_is_told_to_end_has_not_failed(home: Path, asked: Verb, number: int) -> None:
    words = ("run", "--no-agent", "--", sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(60)")
    with subprocess.Popen([*CROSSWIND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
    assert f"exit {process.returncode} (stopped)" in said
    assert "failed" not in said
    shown = asked("show")["run"]
    assert (shown["state"], [name for name in shown["tags"] if name.startswith("failure")]) == ("stopped", [])
    assert asked("explain")["failure"] is None


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise ValueError('first line\\nsecond')", "ValueError: first line"),
        ("import nosuchmodule", "ModuleNotFoundError: No module named 'nosuchmodule'"),
        ("import os; os.abort()", "killed by SIGABRT, compiled code gave up: its last lines say why"),
        ("import os; os._exit(7)", "exit code 7"),
    ],
)
def test_a_crash_is_explained(
    home: Path, asked: Verb, capsys: pytest.CaptureFixture[str], code: str, reason: str
) -> None:
    Path("fails.py").write_text(code)
    assert run(sys.executable, "fails.py") != 0
    assert capsys.readouterr().err.splitlines()[-1] == f"crosswind: failed: the program failed: {reason}"
    explanation = asked("explain")
    assert explanation["failure"] == f"the program failed: {reason}"
    assert explanation["next_action"].startswith("Mend what failed first")


@pytest.mark.parametrize(
    ("words", "options", "reason"),
    [
        (("true",), (), "true has run no Python that could be watched"),
        ((sys.executable, "-c", "pass"), (), "-c has imported no PyTorch"),
        ((sys.executable, "-c", "pass"), ("--no-inject",), "Python programs were not watched (--no-inject)"),
        (("true",), ("--step-lines", "tqdm"), "no line of the output matched --step-lines"),
    ],
)
def test_a_run_without_steps_says_why_and_what_to_do(
    home: Path,
    asked: Verb,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    options: tuple[str, ...],
    reason: str,
) -> None:
    assert run(*words, options=options) == 0
    assert f"crosswind: no steps recorded: {reason}" in capsys.readouterr().err
    assert asked("explain")["next_action"].startswith(f"No steps: {reason}")


def test_the_record_is_in_the_stores_folder_for_any_node(
    home: Path, asked: Verb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_SPOOL", str(home.parent / "node-local"))
    assert run("true") == 0
    assert not sealed_segments(home.parent / "node-local")
    monkeypatch.setenv("CROSSWIND_SPOOL", str(home.parent / "of another node"))
    assert len(asked("runs")) == 1
    assert not sealed_segments(home / "incoming")


def test_a_spool_that_somebody_collects_is_left_to_them(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spool = home / "spool"
    spool.mkdir(parents=True)
    with collecting(spool):
        assert run("true") == 0
    assert f"collected from {spool}" in capsys.readouterr().err
    assert len(sealed_segments(spool)) == 2  # its begin, which is sealed at once, and its end
    assert not (home / "incoming").exists()


def test_a_folder_that_takes_nothing_leaves_the_record_in_the_spool(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    (home / "incoming").write_text("in the way")
    assert run("true") == 0
    assert f"2 files stay in {home / 'spool'}" in capsys.readouterr().err
    assert len(sealed_segments(home / "spool")) == 2


@pytest.mark.host
def test_the_end_of_a_job_costs_at_most_a_third_of_a_second(home: Path) -> None:
    words = [*CROSSWIND, "run", "--", "sh", "-c", "sleep 1; date +%s.%N"]
    costs = []
    for _ in range(3):
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        costs.append(time.time() - float(done.stdout))
    assert min(costs) <= 0.3, costs
