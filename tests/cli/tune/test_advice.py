"""Advice of `crosswind tune` for common mistakes; each time the trial, if one was asked for, keeps its sense."""

from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.cli.main import build_parser, main
from crosswind.cli.verbs.tune.where import passed_over

STUDY = """
objective: {objective}
budget: {{trials: 2}}
parameters: {{bucket_mb: {{kind: ordinal, values: [1, 5, 25]}}}}
"""
QUIET = ("--no-agent", "--no-inject", "--no-ingest")
Tune = Callable[..., str]


@pytest.fixture
def tune(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Tune:
    """Runs one action on studies in a folder; what it printed, on the error output first."""
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_TUNE_FOLDER", str(tmp_path / "studies"))
    monkeypatch.chdir(tmp_path)

    def run(*words: str, code: int = 0) -> str:
        capfd.readouterr()
        assert exit_code("tune", *words) == code
        said, complained = capfd.readouterr()
        return complained + said

    for name in ("loss", "cost"):
        Path(f"{name}.yaml").write_text(STUDY.format(objective="loss" if name == "loss" else "loss / bucket_mb"))
        run("create", f"{name}.yaml")
    return run


def exit_code(*words: str) -> object:
    try:
        return main(words)
    except SystemExit as error:  # what argparse refuses
        return error.code


@pytest.mark.parametrize(
    ("pattern", "printed", "says"),
    [
        (r"Loss=(\S+)", "loss=3", r"standard output: no line matches --objective-pattern 'Loss=(\\S+)'"),
        (r"loss=(\S+)", "loss=3,", r"standard output: --objective-pattern 'loss=(\\S+)' matches '3,', which is no"),
        (r"loss=(\S+)", "loss=nan", "failed: objective loss is nan, expected a finite number\n"),
        (r"loss=(\S+)", "loss=2\nloss=inf", "failed: objective loss is inf, expected a finite number\n"),
        (r"loss=(?P<los>\S+)", "loss=3", "has the groups los, expected one (?P<loss>...)"),
    ],
)
def test_a_result_that_is_not_one_is_named_with_its_reason(tune: Tune, pattern: str, printed: str, says: str) -> None:
    said = tune("exec", "loss", *QUIET, "--objective-pattern", pattern, "--", "printf", printed + "\n", code=1)
    assert says in said
    assert "--objective-from or --objective-pattern says" not in said


def test_a_result_that_nobody_looks_for_is_told_how_to_find_it(tune: Tune) -> None:
    said = tune("exec", "loss", *QUIET, "--", "true", code=1)
    assert "objective loss is not among what came of the run (run_seconds): --objective-from or --objective-p" in said


def test_other_numbers_that_are_nan_are_left_out_of_a_good_trial(tune: Tune) -> None:
    pattern = r"(?P<loss>\S+) (?P<memory>\S+)"
    said = tune("exec", "loss", *QUIET, "--objective-pattern", pattern, "--", "echo", "2.5 nan")
    assert "done, objective 2.5\n" in said


def test_exec_says_why_it_runs_nothing(tune: Tune) -> None:
    assert "trial" in tune("exec", "loss", *QUIET, "--trials", "2", "--objective-pattern", "(.*)", "--", "echo", "1")
    said = "crosswind: study loss has nothing more to try: its budget of 2 trials is used up"
    said += "; crosswind tune extend loss --trials N adds some\n"
    assert tune("exec", "loss", *QUIET, "--", "true", code=4) == said
    assert tune("next", "loss", code=4) == said
    Path("small.yaml").write_text("objective: loss\nparameters: {a: {kind: boolean}}\n")
    tune("create", "small.yaml")
    tune("next", "small")
    tune("exec", "small", *QUIET, "--objective-pattern", "(.*)", "--", "echo", "1")
    said = "its space has no configuration left beside the 2 begun (1 still running)\n"
    assert tune("exec", "small", *QUIET, "--", "true", code=4).endswith(said)


def test_a_program_without_dashes_before_it_is_shown_with_them(tune: Tune) -> None:
    said = tune("exec", "loss", "torchrun", "train.py", "--mb", "{bucket_mb}", code=2)
    assert "expected -- before the program, as in crosswind tune exec loss -- torchrun train.py --mb '{b" in said
    assert "expected a program after --" in tune("exec", "loss", *QUIET, code=2)
    assert "unrecognized arguments: --objectiv" in tune("exec", "loss", "--objectiv", code=2)


def test_a_name_that_no_trial_has_is_refused_before_a_trial_is_asked_for(tune: Tune) -> None:
    said = tune("exec", "loss", *QUIET, "--", "echo", "{bucket}", "{trial}", code=2)
    assert "command: {bucket} is none of bucket_mb, checkpoint, owner, study, trial; did you mean {bucket_mb}?" in said
    assert "0 of 0 trials done" in tune("status", "loss")


def test_a_study_that_is_not_there_is_told_with_a_near_name(tune: Tune) -> None:
    said = tune("exec", "los", *QUIET, "--", "true", code=2)
    assert "study 'los' is not in" in said
    assert said.endswith("; did you mean loss? Otherwise --server URL and --folder DIR ask elsewhere\n")
    assert tune("status", "zzz", code=2).endswith("studies; --server URL and --folder DIR ask elsewhere\n")


def test_what_a_study_that_is_there_lacks_is_told_without_asking_elsewhere(tune: Tune) -> None:
    assert tune("best", "loss", code=2) == "crosswind: study 'loss' has no trial with an objective yet\n"
    assert "elsewhere" not in tune("tell", "loss", "T", "1", code=2)


@pytest.mark.parametrize(
    ("words", "environment", "is_said"),
    [
        ((), {"CROSSWIND_TUNE_FOLDER": "/f", "CROSSWIND_SERVER": "http://s"}, True),
        ((), {"CROSSWIND_TUNE_FOLDER": "/f"}, False),
        ((), {"CROSSWIND_SERVER": "http://s"}, False),
        (("--server", "http://s"), {"CROSSWIND_TUNE_FOLDER": "/f", "CROSSWIND_SERVER": "http://s"}, False),
        (("--folder", "/f"), {"CROSSWIND_TUNE_FOLDER": "/f", "CROSSWIND_SERVER": "http://s"}, False),
    ],
)
def test_a_folder_that_comes_before_a_server_is_told(
    words: tuple[str, ...], environment: dict[str, str], is_said: bool
) -> None:
    sentence = passed_over(build_parser("tune").parse_args(["tune", "status", "s", *words]), environment)
    wanted = "studies are in /f ($CROSSWIND_TUNE_FOLDER), not at http://s ($CROSSWIND_SERVER)"
    assert sentence.startswith(wanted) is is_said
    assert bool(sentence) is is_said


def test_it_is_told_once_a_call(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CROSSWIND_SERVER", "http://127.0.0.1:9")
    assert tune("status", "loss").count("not at http://127.0.0.1:9") == 1
