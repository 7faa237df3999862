import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from crosswind.cli.main import main
from crosswind.cli.text.run_table import short
from crosswind.dashboards.wording import NONE
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store

Ask = Callable[..., str]
START_NS = 1_767_323_045_000_000_001
MS = 1_000_000


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path))
    for name in ("CROSSWIND_DATABASE", "CROSSWIND_SERVER"):
        monkeypatch.delenv(name, raising=False)

    def ask(*words: str) -> str:
        assert main(["runs", *words]) == 0
        return capsys.readouterr().out

    return ask


@pytest.fixture
def three_runs(tmp_path: Path) -> None:
    """A completed run with steps of 20 ms, one that failed without steps, and one whose names are hostile."""
    timed = Run(
        "r1", "toy", "lab", RunState.COMPLETED, 2, {"batch": 8}, started_ns=START_NS, ended_ns=START_NS + 1500 * MS
    )
    failed = Run("r2", "tool", "lab", RunState.FAILED, started_ns=START_NS + 1)
    hostile = Run("r3", "\x1b]0;owned\x07", "alps", RunState.LOST, configuration={"a": "\n\n"}, started_ns=START_NS + 2)
    with Store.open(tmp_path) as store:
        with store.catalog.write() as session:
            for run in (timed, failed, hostile):
                session.runs.merge(run)
        steps = range(10)
        columns = {
            "ts_ns": [START_NS + step for step in steps],
            "run_id": ["r1"] * 10,
            "rank": [0] * 10,
            "step": list(steps),
            "duration_seconds": [20 * MS] * 10,
        }
        store.lake.append("p", to_table(STEP, columns))


@pytest.mark.usefixtures("three_runs")
def test_runs_are_listed_newest_first_with_their_steps(ask: Ask) -> None:
    heading, third, second, first = ask().splitlines()
    assert heading.split("  ")[0] == "run"
    assert first.split() == ["r1", "toy", "completed", "2", "1.50", "s", "7", "20.0", "ms", "0.0%", "batch=8"]
    assert second.split() == ["r2", "tool", "failed", *[NONE] * 5]
    assert third.startswith("r3")


@pytest.mark.usefixtures("three_runs")
def test_hostile_names_move_no_cursor_and_break_no_line(ask: Ask) -> None:
    table = ask()
    assert len(table.splitlines()) == 4
    assert table.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("words", "run_ids"),
    [
        (("--state", "failed"), ["r2"]),
        (("--workload", "toy"), ["r1"]),
        (("--system", "lab"), ["r2", "r1"]),
        (("--system", "lab", "--limit", "1"), ["r2"]),
        (("--workload", "x' or '1'='1"), []),
    ],
)
@pytest.mark.usefixtures("three_runs")
def test_runs_are_filtered(ask: Ask, words: tuple[str, ...], run_ids: list[str]) -> None:
    assert [run["run_id"] for run in json.loads(ask("--json", *words))] == run_ids


@pytest.mark.usefixtures("three_runs")
def test_machines_get_exact_times_and_nulls(ask: Ask) -> None:
    third, _, first = json.loads(ask("--json"), parse_constant=pytest.fail)
    assert (first["started_ns"], first["world_size"], first["step_p50_seconds"]) == (START_NS, 2, pytest.approx(0.02))
    assert (third["world_size"], third["steps"], third["run_seconds"]) == (None, None, None)


def test_an_empty_store_says_how_to_fill_it(ask: Ask) -> None:
    assert "crosswind run -- torchrun" in ask()
    assert json.loads(ask("--json")) == []


def test_rates_tell_luck_in_converging_from_the_systems_pace(tmp_path: Path, ask: Ask) -> None:
    assert "No cohort has two runs" in ask("--rates")
    with Store.open(tmp_path) as store, store.catalog.write() as session:
        for number, (seconds, epochs) in enumerate(((100, 10), (200, 20), (300, 30))):
            tags = {"progress": str(epochs), "progress_unit": "epochs"}
            run = Run(f"r{number}", "ssd", "lab", RunState.COMPLETED, 8, started_ns=START_NS, tags=tags)
            session.runs.merge(replace(run, ended_ns=START_NS + seconds * 1000 * MS))
    [line] = [line for line in ask("--rates").splitlines() if line.startswith("ssd")]
    assert line.split() == [
        "ssd",
        "lab",
        "8",
        "3",
        "3",
        "min",
        "20",
        "s",
        "50.0%",
        "20",
        "epochs",
        "50.0%",
        "10.0",
        "s",
        "0.0%",
    ]
    [rate] = json.loads(ask("--rates", "--json"))
    assert (rate["runs"], rate["progress_cov_ratio"]) == (3, 0.5)


LONG = {f"option_{number:02}": number for number in range(20)}


@pytest.fixture
def long_configurations(tmp_path: Path) -> None:
    """Two runs of twenty parameters, of which the learning rate alone differs."""
    with Store.open(tmp_path) as store, store.catalog.write() as session:
        for number, rate in enumerate((0.1, 0.25)):
            configuration = {**LONG, "rate": rate}
            session.runs.merge(Run(f"r{number}", "toy", "lab", RunState.COMPLETED, 2, configuration, started_ns=number))


@pytest.mark.usefixtures("long_configurations")
def test_a_long_configuration_is_cut_and_what_differs_comes_first(ask: Ask) -> None:
    for line, rate in zip(ask().splitlines()[1:], ("0.25", "0.1"), strict=True):
        configuration = line[line.index("rate=") :]
        assert configuration.startswith(f"rate={rate} option_00=0 option_01=1 ")
        assert len(configuration) <= 60
        shown = configuration.count("=")
        assert configuration.endswith(f" +{21 - shown}")


@pytest.mark.usefixtures("long_configurations")
def test_columns_are_those_that_were_asked_for_and_whole(ask: Ask) -> None:
    heading, second, _ = ask("--columns", "run,config.rate,tag.none,system,configuration").splitlines()
    assert heading.split() == ["run", "rate", "none", "system", "configuration"]
    assert second.split()[:4] == ["r1", "0.25", NONE, "lab"]
    assert second.endswith("option_19=19 rate=0.25")


@pytest.mark.parametrize("columns", ["", "run,speed", "config.", "run,,state"])
def test_a_column_that_is_none_is_named(
    columns: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path))
    wrong = next(name for name in columns.split(",") if name not in ("run", "state"))
    assert main(["runs", "--columns", columns]) == 2
    assert f"--columns {wrong!r}: expected some of run, workload, state" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("width", "shown"),
    [(100, "b=2 a=1 c=3"), (11, "b=2 a=1 c=3"), (10, "b=2 a=1 +1"), (6, "b=2 +2"), (5, "b=2 …")],
)
def test_as_many_parameters_are_shown_as_fit(width: int, shown: str) -> None:
    assert short({"a": 1, "b": 2, "c": 3}, frozenset({"b"}), width) == shown
