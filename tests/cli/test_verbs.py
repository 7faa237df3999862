"""The verbs that read a store: show, explain, predict, tune, doctor, agent."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.asking import Ask, asking

from crosswind.cli.main import VERBS
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.run import Run, RunState
from crosswind.data.schema.steps import STEP
from crosswind.data.store.store import Store
from crosswind.ingest.collectors import SOURCES

SECOND = 1_000_000_000
STEPS = 40


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CROSSWIND_SYSTEM", "lab")
    monkeypatch.delenv("CROSSWIND_SPOOL", raising=False)
    return tmp_path / "home"


@pytest.fixture
def ask(home: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    return asking(capsys)


@pytest.fixture
def seven_runs(home: Path) -> Path:
    """Seven runs of one cohort; in the last, rank 1 waits 30 ms for every batch."""
    with Store.open(home) as store:
        for number in range(7):
            run_id = f"RUN000{number}"
            began = number * 1000 * SECOND
            run = Run(
                run_id,
                "toy",
                "lab",
                RunState.COMPLETED,
                world_size=2,
                configuration={"batch": 8},
                started_ns=began,
                ended_ns=began + 60 * SECOND,
                tags={"note": "x"},
            )
            with store.catalog.write() as session:
                session.runs.merge(run)
            store.lake.append(run_id, to_table(STEP, step_columns(run_id, number, slow=number == 6)))
    return home


def step_columns(run_id: str, seed: int, *, slow: bool) -> dict[str, list[int | str]]:
    noise = np.random.default_rng(seed).normal(1.0, 0.01, STEPS)
    columns: dict[str, list[int | str]] = {column.name: [] for column in STEP.columns}
    for step in range(STEPS):
        for rank in (0, 1):
            waited = 30_000_000 if slow and rank == 1 else 1_000_000
            compute = int(40_000_000 * noise[step])
            slowest = compute + (30_000_000 if slow else 1_000_000)
            values = dict.fromkeys(columns, 0) | {"run_id": run_id, "rank": rank, "step": step, "ts_ns": step}
            values |= {"input_seconds": waited, "compute_seconds": compute, "duration_seconds": slowest + 2_000_000}
            values |= {"comm_seconds": slowest + 2_000_000 - compute - waited}
            for name, value in values.items():
                columns[name].append(value)
    return columns


def test_explain_names_the_injected_cause_of_the_latest_run(ask: Ask, seven_runs: Path) -> None:
    code, said, _ = ask("explain")
    assert code == 0
    assert "RUN0006" in said
    assert "Slow input on rank 1" in said
    assert "unexplained" in said
    code, said, _ = ask("explain", "RUN0006", "--json")
    explanation = json.loads(said)
    assert explanation["cause"] == "slow_input"
    [edge] = explanation["waits"]["edges"]
    assert (edge["culprit"], edge["victim"]) == (1, 0)
    assert edge["seconds"] == pytest.approx(explanation["waits"]["lost_seconds"])


def test_explain_abstains_when_nothing_compares(ask: Ask, home: Path) -> None:
    with Store.open(home) as store, store.catalog.write() as session:
        session.runs.merge(Run("ALONE", "toy", "lab", RunState.COMPLETED, started_ns=1))
    code, said, _ = ask("explain", "ALONE")
    assert code == 0
    assert "Not enough evidence" in said
    assert "run.watch(model)" in said


def test_show_tells_steps_and_phases(ask: Ask, seven_runs: Path) -> None:
    code, said, _ = ask("show", "0003")
    assert code == 0
    assert "37 steps" in said
    assert "compute" in said
    code, said, _ = ask("show", "RUN0003", "--json")
    assert json.loads(said)["outcome"]["steps"] == 37


def test_predict_tells_the_usual_time_and_that_a_disturbed_run_is_possible(ask: Ask, seven_runs: Path) -> None:
    code, said, _ = ask("predict", "--workload", "toy", "--ranks", "2", "--config", "batch=8", "--json")
    assert code == 0
    prediction = json.loads(said)
    level = {quantile["level"]: quantile["seconds"] for quantile in prediction["quantiles"]}
    assert level[0.5] == pytest.approx(0.043, rel=0.1)  # six runs took that, one of the seven was disturbed
    assert level[0.99] > 0.050
    assert (prediction["basis"], prediction["cohort_runs"], prediction["outcome"]) == ("cohort", 7, "step_p50_seconds")


def test_a_study_goes_from_create_to_best(ask: Ask, home: Path, tmp_path: Path) -> None:
    space = tmp_path / "space.json"
    space.write_text('{"threads": {"kind": "ordinal", "values": [1, 2, 4]}}')
    assert ask("tune", "create", "s", str(space))[0] == 0
    for _ in range(3):
        _, said, _ = ask("tune", "suggest", "s", "--json")
        [record] = json.loads(said)
        threads = record["trial"]["configuration"]["threads"]
        assert ask("tune", "complete", "s", record["trial"]["trial_id"], str(1 / threads))[0] == 0
    code, said, _ = ask("tune", "--json", "status", "s")
    assert code == 0
    assert json.loads(said)["best"]["configuration"] == {"threads": 4}


def test_doctor_looks_at_every_source(ask: Ask) -> None:
    code, said, _ = ask("doctor", "--json")
    assert code == 0
    findings = {finding["what"]: finding for finding in json.loads(said)["findings"]}
    assert {"store", "spool", "clock", "package torch"} <= findings.keys()
    assert {f"source {source.name}" for source in SOURCES} <= findings.keys()
    assert "values in" in findings["source cpu"]["detail"]
    assert all(
        finding["advice"] for what, finding in findings.items() if what.startswith("source") and not finding["works"]
    )


def test_doctor_tries_what_the_agents_settings_ask_for(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text("[sources.cpu]\nspeed = 3\n")
    code, said, _ = ask("doctor", "--config", str(tmp_path / "agent.toml"))
    assert code == 0
    assert "sources.cpu.speed: unknown" in said


def test_doctor_refuses_what_the_agent_would_refuse(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text("[sources.nosuch]\nenabled = true\n")
    code, _, complaint = ask("doctor", "--config", str(tmp_path / "agent.toml"))
    assert code == 2
    assert "sources.nosuch: unknown" in complaint
    (tmp_path / "agent.toml").write_text('spool = "/dev/null/spool"\n')
    code, said, _ = ask("doctor", "--config", str(tmp_path / "agent.toml"))
    assert code == 1
    assert "/dev/null/spool cannot be written" in said


def test_doctor_says_how_to_get_a_store_that_can_be_written(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "file" / "home"))
    code, said, _ = ask("doctor")
    assert code == 1
    assert "CROSSWIND_HOME" in said


def test_agent_takes_one_sweep(ask: Ask, home: Path) -> None:
    assert ask("agent", "--once")[0] == 0
    code, said, _ = ask("ingest", "--json")
    assert code == 0
    assert json.loads(said)["loaded"]["rows"] > 5


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("explain", "NOPE"), "NOPE"),
        (("compare", "NOPE", "latest"), "NOPE"),
        (("show", "RUN000"), "RUN000"),
        (("show", "x" * 10_000), "is not stored"),
        (("predict", "--workload", "toy", "--ranks", "0"), "--ranks 0"),
        (("predict", "--workload", "toy", "--ranks", "two"), "two"),
        (("predict", "--workload", "toy", "--ranks", "2", "--config", "batch"), "NAME=VALUE"),
        (("predict", "--workload", "unheard-of", "--ranks", "2"), "known are toy"),
        (("runs", "--limit", "0"), "--limit 0"),
        (("runs", "--state", "sleeping"), "sleeping"),
        (("tune", "suggest", "nothing"), "nothing"),
        (("tune", "complete", "nothing", "T", "nan"), "finite"),
        (("agent", "--interval", "0"), "interval"),
        (("run", "--tag", "x", "--", "true"), "NAME=VALUE"),
        (("run",), "--"),
        (("demo", "--trials", "-1"), "--trials -1"),
        (("serve", "--port", "99999"), "99999"),
        (("serve", "--host", "0.0.0.0"), "CROSSWIND_TOKEN"),
        (("frobnicate",), "frobnicate"),
    ],
)
def test_bad_input_is_reported_with_exit_code_2_and_changes_nothing(
    ask: Ask, seven_runs: Path, words: tuple[str, ...], message: str
) -> None:
    before = json.loads(ask("runs", "--json")[1])
    code, _, complaint = ask(*words)
    assert code == 2
    assert message in complaint
    assert "Traceback" not in complaint
    assert json.loads(ask("runs", "--json")[1]) == before


def test_a_space_that_is_none_is_refused(ask: Ask, tmp_path: Path) -> None:
    for content, message in (("{", "JSON"), ("[]", "object"), ('{"a": {"kind": "wild"}}', "wild"), ("{}", "space")):
        (tmp_path / "space.json").write_text(content)
        code, _, complaint = ask("tune", "create", "s", str(tmp_path / "space.json"))
        assert code == 2
        assert message in complaint
    assert ask("tune", "create", "s", str(tmp_path / "missing.json"))[0] == 75


@pytest.mark.parametrize("verb", [verb.name for verb in VERBS])
def test_every_verb_has_help_and_json(ask: Ask, verb: str) -> None:
    code, said, _ = ask(verb, "--help")
    assert code == 0
    assert "--json" in said


def test_compare_says_by_what_the_slower_run_took_longer(seven_runs: Path, ask: Ask) -> None:
    code, text, _ = ask("compare", "RUN0002", "RUN0006")
    assert code == 0
    assert "RUN0006 took" in text
    assert "slow input" in text
    assert "unexplained" in text
    assert "differs" not in text
    comparison = json.loads(ask("compare", "RUN0006", "RUN0002", "--json")[1])
    assert (comparison["slower"], comparison["faster"], comparison["shares"][0]["cause"]) == (
        "RUN0006",
        "RUN0002",
        "slow_input",
    )
