"""Results as programs tell them: in files, on the output, by recorded steps."""

import subprocess
import sys
from pathlib import Path

import pytest

from crosswind.cli.verbs.tune.execution.objective_output import compiled, listening, outcomes_in
from crosswind.cli.verbs.tune.execution.run_outcomes import step_outcomes
from crosswind.cli.verbs.tune.judging import judged
from crosswind.data.schema.errors import InvalidInputError, MalformedError, UnavailableError
from crosswind.data.schema.steps import STEP
from crosswind.data.schema.trial import Study
from crosswind.ingest.spool.spool import SpoolWriter

STUDY = Study("S", "s", {}, "loss", "1", 0, 0)


@pytest.mark.parametrize(
    ("text", "outcomes"),
    [
        ("0.25\n", {"loss": 0.25}),
        ('{"loss": 2, "memory_bytes": 1e9, "note": "x"}', {"loss": 2.0, "memory_bytes": 1e9}),
        ('{"loss": 3}\n{"loss": 1}\n', {"loss": 1.0}),
    ],
)
def test_a_file_tells_a_number_or_named_numbers(tmp_path: Path, text: str, outcomes: dict[str, float]) -> None:
    path = tmp_path / "result"
    path.write_text(text)
    assert outcomes_in(path, "loss", None) == outcomes


def test_the_last_match_in_a_file_counts(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("loss=fast mem=9\nloss=3 mem=10\nloss=2 mem=11\nloss=? mem=12\nend\n")
    assert outcomes_in(path, "loss", compiled(r"loss=(?P<loss>\S+) mem=(?P<mem>\d+)")) == {"loss": 2.0, "mem": 12.0}


@pytest.mark.parametrize(
    ("text", "pattern"), [("NaN", None), ('{"loss": NaN}', None), ("loss=3\nloss=nan", r"loss=(\S+)")]
)
def test_a_program_that_diverged_has_no_result(tmp_path: Path, text: str, pattern: str | None) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    outcomes = outcomes_in(path, "loss", compiled(pattern) if pattern else None)
    with pytest.raises(InvalidInputError, match="objective loss is nan, expected a finite number"):
        judged(STUDY, {}, outcomes)


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        (r"^loss=(\S+)", r"log: no line matches --objective-pattern '^loss=(\\S+)'"),
        (
            r"loss=(.*)",
            r"log: --objective-pattern 'loss=(.*)' matches '3 (best 2)', which is no number: narrow its group",
        ),
        (r"loss=(?P<cost>\d)", r"has the groups cost, expected one (?P<loss>...)"),
    ],
)
def test_a_pattern_that_gives_no_number_is_told_from_one_that_is_missing(
    tmp_path: Path, pattern: str, says: str
) -> None:
    path = tmp_path / "log"
    path.write_text("step 1 loss=3 (best 2)\n")
    with pytest.raises(MalformedError) as caught:
        outcomes_in(path, "loss", compiled(pattern))
    assert says in str(caught.value)
    assert "--objective-from or" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "diverged", "[1]", '{"loss": "low"}'])
def test_a_file_without_a_number_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "result"
    path.write_text(text)
    with pytest.raises(MalformedError, match=r"result: .*expected a number"):
        outcomes_in(path, "loss", None)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"--objective-from .*missing: No such file"):
        outcomes_in(tmp_path / "missing", "loss", None)


@pytest.mark.parametrize(("pattern", "reason"), [("loss=(", "loss="), ("loss=", "has no group")])
def test_a_pattern_that_finds_nothing_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(InvalidInputError, match=reason):
        compiled(pattern)


def test_output_passes_on_unchanged_while_it_is_heard() -> None:
    code = (
        "import os, subprocess\n"
        "from crosswind.cli.verbs.tune.execution.objective_output import compiled, listening\n"
        "with listening(compiled(r'loss=(\\S+)'), 'loss') as heard:\n"
        "    subprocess.run(['printf', 'a\\\\rb\\\\nloss=4\\\\nloss=2'])\n"
        "os.write(2, str(heard.numbers['loss']).encode())\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert ended.stdout == b"a\rb\nloss=4\nloss=2"
    assert ended.stderr == b"2.0"


def test_listening_gives_the_output_back() -> None:
    with listening(compiled("(x)"), "loss") as heard:
        pass
    assert heard.numbers == {}


def test_steps_in_the_spool_tell_what_show_tells(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = []
    for step in range(8):
        for rank, duration in ((0, 10_000_000), (1, 10_000_000 + step * 1_000_000)):
            values = {column.name: 0 for column in STEP.columns}
            rows.append(values | {"run_id": "R", "rank": rank, "step": step, "duration_seconds": duration})
    with SpoolWriter(tmp_path, "R-rank") as writer:
        columns = {column.name: [row[column.name] for row in rows] for column in STEP.columns}
        writer.append_rows(STEP, columns)  # type: ignore[arg-type]
        open_segment = step_outcomes(tmp_path, "R")
    sealed = step_outcomes(tmp_path, "R")
    assert sealed["steps"] == 5  # the first three warm up
    assert sealed["step_p50_seconds"] == pytest.approx(0.015)
    assert sealed["step_p95_seconds"] == pytest.approx(0.0168)
    assert open_segment == sealed
    assert step_outcomes(tmp_path, "other") == {}


def test_the_objective_is_an_outcome_or_computed_of_outcomes_and_parameters() -> None:
    assert judged(STUDY, {}, {"loss": 2.0}) == 2.0
    cost = Study("S", "s", {}, "run_seconds * nodes", "1", 0, 0)
    assert judged(cost, {"nodes": 4}, {"run_seconds": 2.5}) == 10.0
    larger = Study("S", "s", {}, "loss", "1", 0, 0, direction="maximise")
    assert judged(larger, {}, {"loss": 2.0}) == -2.0


def test_an_objective_that_nobody_told_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"objective loss is not among .*run_seconds.*--objective-from"):
        judged(STUDY, {}, {"run_seconds": 1.0})
    with pytest.raises(InvalidInputError, match=r"among .*run_seconds.*: no line matches$"):
        judged(STUDY, {}, {"run_seconds": 1.0}, "no line matches")
    with pytest.raises(InvalidInputError, match="loss is inf"):
        judged(STUDY, {}, {"loss": float("inf")})
