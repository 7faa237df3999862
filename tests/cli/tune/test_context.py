"""Choices by context, from the command line to the store: what other inputs showed decides for a new one."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.serving import answering

from crosswind.cli.main import main
from crosswind.cli.verbs.tune.context import context_in
from crosswind.data.schema.context import fitting_reason
from crosswind.data.schema.errors import InvalidInputError, UnavailableError
from crosswind.data.schema.trial import Trial, TrialRecord, TrialState

STUDY = """
name: solvers
objective: solve_seconds
parameters:
  solver: {kind: categorical, values: [direct, multigrid, risky]}
"""
Tune = Callable[..., str]


@pytest.fixture(params=["store", "folder"])
def tune(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Tune:
    """Runs one action on studies in a store, and in a folder; what it printed."""
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    if request.param == "folder":
        monkeypatch.setenv("CROSSWIND_TUNE_FOLDER", str(tmp_path / "studies"))

    def run(*words: str, code: int = 0) -> str:
        assert main(["tune", *words]) == code
        said = capsys.readouterr()
        return said.out if code in (0, 4) else said.err

    (tmp_path / "solvers.yaml").write_text(STUDY)
    run("create", str(tmp_path / "solvers.yaml"))
    return run


def solve(tune: Tune, size: int, context: str = "") -> str:
    """Asks for a solver for a matrix of this size and tells how it went: direct is quick below 10, multigrid above."""
    context = context or f"size={size},density=0.01"
    [suggestion] = json.loads(tune("next", "solvers", "--context", context, "--json"))
    solver = suggestion["configuration"]["solver"]
    if solver == "risky":
        tune("tell", "solvers", suggestion["trial_id"], "--failed", "diverged", "--context", context)
    else:
        seconds = {"direct": 1.0 if size < 10 else 9.0, "multigrid": 3.0 if size < 10 else 2.0}[solver]
        tune("tell", "solvers", suggestion["trial_id"], str(seconds), "--context", context)
    return str(solver)


@pytest.mark.thorough
def test_the_first_choice_for_a_new_input_is_what_was_good_for_those_alike(tune: Tune) -> None:
    for size in (1, 2, 3, 4, 5, 16, 17, 18, 19, 20):
        assert {solve(tune, size) for _ in range(3)} == {"direct", "multigrid", "risky"}
    assert solve(tune, 2500) == "multigrid"
    assert [solve(tune, 0), solve(tune, 0), solve(tune, 0)] == ["direct", "multigrid", "risky"]
    tune("next", "solvers", "--context", "size=0,density=0.01", code=4)


def test_a_job_script_need_not_repeat_the_context(tune: Tune, monkeypatch: pytest.MonkeyPatch) -> None:
    exported = tune("next", "solvers", "--context", "size=3,density=0.5", "--format", "env")
    assert """export CROSSWIND_TRIAL_CONTEXT='{"density": 0.5, "size": 3.0}'""" in exported
    for line in exported.splitlines():
        name, _, value = line.removeprefix("export ").partition("=")
        monkeypatch.setenv(name, value.strip("'"))
    trial_id = next(line.partition("=")[2] for line in exported.splitlines() if "CROSSWIND_TRIAL=" in line)
    [record] = json.loads(tune("tell", "solvers", trial_id, "2.5", "--json"))
    assert record["outcomes"] == {"context.density": 0.5, "context.size": 3.0}


def test_fail_keeps_the_context_too(tune: Tune) -> None:
    [suggestion] = json.loads(tune("next", "solvers", "--context", "size=3", "--json"))
    words = ("--reason", "diverged", "--context", "size=3", "--json")
    [failed] = json.loads(tune("fail", "solvers", suggestion["trial_id"], *words))
    assert failed["reason"] == 'diverged context={"size": 3.0}'


def test_a_context_unlike_the_study_s_is_refused_by_name(tune: Tune) -> None:
    solve(tune, 3)
    said = tune("next", "solvers", "--context", "size=3,densty=0.5", code=2)
    assert "densty is unknown" in said or "density is missing" in said
    assert "expected density, size as in the study's earlier trials" in said
    assert "density is missing" in tune("next", "solvers", "--context", "size=3", code=2)
    assert "context size is 'nan', expected a finite number" in tune("next", "solvers", "--context", "size=nan", code=2)


def test_an_exported_context_that_was_spoilt_is_refused_by_its_variable(
    tune: Tune, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_TRIAL", "01")
    monkeypatch.setenv("CROSSWIND_TRIAL_CONTEXT", "{size: 3}")
    assert "CROSSWIND_TRIAL_CONTEXT is '{size: 3}'" in tune("tell", "solvers", "01", "2.5", code=2)


def test_what_is_made_larger_is_not_chosen_by_context(tune: Tune, tmp_path: Path) -> None:
    path = tmp_path / "faster.yaml"
    path.write_text(STUDY.replace("solvers", "faster") + "direction: maximise\n")
    tune("create", str(path))
    [suggestion] = json.loads(tune("next", "faster", "--context", "size=3", "--json"))
    tune("tell", "faster", suggestion["trial_id"], "5", "--context", "size=3")
    assert "objective is -5.0, expected a positive finite number" in tune(
        "next", "faster", "--context", "size=3", code=2
    )


@pytest.mark.thorough
def test_a_server_chooses_by_context_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def tune(*words: str, code: int = 0) -> str:
        assert main(["tune", *words]) == code
        said = capsys.readouterr()
        return said.err if code == 2 else said.out

    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "client"))
    (tmp_path / "solvers.yaml").write_text(STUDY)
    with answering(tmp_path / "server") as url:
        monkeypatch.setenv("CROSSWIND_SERVER", url)
        tune("create", str(tmp_path / "solvers.yaml"))
        for size in (1, 2, 3, 4, 5, 16, 17, 18, 19, 20):
            assert {solve(tune, size) for _ in range(3)} == {"direct", "multigrid", "risky"}
        assert [solve(tune, 0), solve(tune, 2500)] == ["direct", "multigrid"]
        assert "density is missing" in tune("next", "solvers", "--context", "size=3", code=2)


@pytest.mark.thorough
def test_exec_chooses_by_context_tells_it_to_the_program_and_keeps_it(
    tune: Tune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = """
import json, os, sys
size = json.loads(os.environ["CROSSWIND_TRIAL_CONTEXT"])["size"]
solver = sys.argv[1]
if solver == "risky":
    sys.exit(7)
print("seconds", {"direct": 1.0 if size < 10 else 9.0, "multigrid": 3.0 if size < 10 else 2.0}[solver])
"""
    (tmp_path / "solve.py").write_text(script)
    quiet = ("--no-agent", "--no-inject", "--no-ingest", "--objective-pattern", r"seconds (\S+)")
    for size in (1, 2, 3, 4, 5, 16, 17, 18, 19, 20):
        words = ("exec", "solvers", *quiet, "--context", f"size={size}", "--trials", "3")
        codes = {main(["tune", *words, "--", sys.executable, "solve.py", "{solver}"])}
        assert codes <= {0, 7}
    records = json.loads(tune("status", "solvers", "--json"))["trials"]
    assert len(records) == 30
    failed = [record for record in records if record["trial"]["state"] == "failed"]
    assert len(failed) == 10
    assert all(record["reason"].startswith("exit code 7 context=") for record in failed)
    assert {record["outcomes"]["context.size"] for record in records if record["outcomes"]} == {
        *map(float, (1, 2, 3, 4, 5, 16, 17, 18, 19, 20))
    }
    assert solve(tune, 2500, "size=2500") == "multigrid"


def test_what_the_trial_was_chosen_for_is_kept_whatever_the_program_says(
    tune: Tune, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "write.py").write_text(
        """open("result.json", "w").write('{"solve_seconds": 2, "context.size": 999}')"""
    )
    words = ("--no-agent", "--no-inject", "--no-ingest", "--objective-from", "result.json", "--context", "size=3")
    tune("exec", "solvers", *words, "--", sys.executable, "write.py")
    [record] = json.loads(tune("status", "solvers", "--json"))["trials"]
    assert record["outcomes"]["context.size"] == 3.0


def test_numbers_come_from_the_command_line_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "matrix.json"
    path.write_text(json.dumps({"size": 10, "density": 0.01}))
    assert context_in("size=1e1,density=0.01") == context_in(str(path)) == {"density": 0.01, "size": 10.0}
    assert list(context_in(str(path))) == ["density", "size"]
    path = tmp_path / "matrix.yaml"
    path.write_text("size: 1e1\ndensity: 1e-2\n")
    assert context_in(str(path)) == {"density": 0.01, "size": 10.0}
    path.write_text("size: [")
    with pytest.raises(InvalidInputError, match="expected an object of numbers"):
        context_in(str(path))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("size", "expected NAME=NUMBER"),
        ("=3", "expected NAME=NUMBER"),
        ("size=1,size=2", "each name once"),
        ("size=inf", "context size is 'inf', expected a finite number"),
        ("codec=wav", "context codec is 'wav', expected a finite number"),
    ],
)
def test_words_that_are_no_context_are_refused(word: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        context_in(word)


@pytest.mark.parametrize(
    ("content", "message"),
    [("[1]", "expected an object"), ("{", "expected an object"), ("{}", "has 0 numbers, expected 1 to 200")],
)
def test_a_file_that_holds_no_context_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "matrix.json"
    path.write_text(content)
    with pytest.raises(InvalidInputError, match=message):
        context_in(str(path))
    path.write_text('{"is_symmetric": true}')
    with pytest.raises(InvalidInputError, match="context is_symmetric is True, expected a finite number"):
        context_in(str(path))
    with pytest.raises(UnavailableError, match=r"none.json: No such file"):
        context_in(str(tmp_path / "none.json"))


def test_a_trial_carries_its_context_whether_it_was_measured_or_failed() -> None:
    context = {"density": 0.01, "size": 1e6}
    done = TrialRecord(Trial({}, TrialState.DONE, 1.0, "", context), "s", outcomes={"memory_bytes": 1.0})
    failed = TrialRecord(Trial({}, TrialState.FAILED, None, "", context), "s", reason="out of memory")
    assert done.as_json()["outcomes"] == {"memory_bytes": 1.0, "context.density": 0.01, "context.size": 1e6}
    assert failed.as_json()["reason"] == 'out of memory context={"density": 0.01, "size": 1000000.0}'
    for record in (done, failed):
        assert TrialRecord.from_json(record.as_json()) == TrialRecord.from_json(record.as_nested_json()) == record
    for reason in (None, "no context=", "bad context={", 'odd context={"size": "NaN"}', "none context={}"):
        assert failed_because(reason).trial.context == {}


def failed_because(reason: str | None) -> TrialRecord:
    """A failed trial as it is stored with this reason, which comes back as it was."""
    fields = TrialRecord(Trial({}, TrialState.FAILED), "s").as_json() | {"reason": reason}
    record = TrialRecord.from_json(fields)
    assert record.as_json() == fields
    return record


def test_a_context_that_somebody_else_wrote_is_read_and_left_as_it_was() -> None:
    assert failed_because('diverged context={"size":3}').trial.context == {"size": 3.0}
    assert failed_because(f'{"x" * 5000} context={{"size": 3.0}}').reason == "x" * 5000


def test_a_long_reason_leaves_room_for_the_context() -> None:
    reason = fitting_reason("x" * 5000, {"size": 3.0})
    assert (len(reason), reason[-24:]) == (4000, 'xxx context={"size": 3.0}'[-24:])
    many = {f"a number with a rather long name {number}": 1.0 for number in range(200)}
    assert fitting_reason("diverged", many) == "diverged"


@pytest.mark.parametrize("behind", ["[" * 3000, '{"a": ' + "9" * 400 + "}", '{"": 1}'])
def test_somebody_else_s_words_behind_a_reason_stop_no_choice(behind: str) -> None:
    assert failed_because(f"diverged context={behind}").trial.context == {}
