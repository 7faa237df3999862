"""`crosswind stragglers` and `crosswind regressions`, by the store at hand and through a server."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.cli.asking import Ask, asking
from tests.models.forecast.stored_weather import store_weather
from tests.models.stragglers.made_up_fleet import drawn_nodes, store_fleet
from tests.models.stragglers.made_up_steps import USUAL, Late, step_rows
from tests.models.stragglers.test_live import put
from tests.serving import answering

from crosswind.cli.verbs.stragglers import live_text
from crosswind.data.schema.answers.stragglers import Episode, RunStragglers, Slowdown
from crosswind.data.store.store import Store

TOPOLOGY = "SwitchName=s1 Nodes=n[0-5]\nSwitchName=s2 Nodes=n[6-11]\nSwitchName=top Switches=s[1-2]  # the spine\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """80 runs, in which n3 takes 1.2 times as long; `late`, whose rank 1 is late; and weather that became slower."""
    home = tmp_path_factory.mktemp("slow") / "home"
    store_fleet(home, drawn_nodes(80, 4, 12), {3: np.log(1.2)})
    store_weather(home, 120, lambda hours: 1.4 if hours >= 90 else 1.0, system="other")
    with Store.open(home) as store:
        put(store, "late", step_rows(2, 100, Late(1, USUAL / 2, "input", 50)), 2)
    return home


@pytest.fixture
def ask(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    for name in ("CROSSWIND_SERVER", "CROSSWIND_TOKEN", "CROSSWIND_TOKEN_FILE", "CROSSWIND_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CROSSWIND_HOME", str(home))
    return asking(capsys)


def test_the_slow_node_is_the_verdict_with_what_to_do(ask: Ask) -> None:
    code, said, _ = ask("stragglers", "--workload", "bert", "--system", "lab", "--limit", "2")
    lines = said.splitlines()
    assert code == 0
    assert lines[0].startswith("node n3 takes 1.")
    assert lines[1] == "#SBATCH --exclude=n3"
    assert lines[3].split() == ["kind", "name", "ratio", "90", "%", "slower", "runs", "since", "before", "from"]
    assert lines[4].split()[:3] == ["*", "node", "n3"]
    assert said.count("\n  ") <= 4
    assert "from: 80 runs, 80 with ranks on several nodes; a node differs by" in said


def test_switches_are_ranked_where_a_topology_is_given(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "topology.conf"
    path.write_text(TOPOLOGY)
    answer = json.loads(ask("stragglers", "--system", "lab", "--topology", str(path), "--limit", "99", "--json")[1])
    assert {component["name"] for component in answer["ranked"] if component["kind"] == "switch"} == {"s1", "s2"}


def test_switches_are_ranked_where_the_store_has_a_topology(ask: Ask, home: Path) -> None:
    path = home / "topology.conf"
    path.write_text(TOPOLOGY)
    try:
        answer = json.loads(ask("stragglers", "--system", "lab", "--limit", "99", "--json")[1])
        path.write_text("SwitchName=s1\n")
        code, _, complaint = ask("stragglers", "--system", "lab")
    finally:
        path.unlink()
    assert {component["name"] for component in answer["ranked"] if component["kind"] == "switch"} == {"s1", "s2"}
    assert code == 2
    assert f"{path}: no line SwitchName=" in complaint


def test_a_run_is_listed_with_the_rank_it_waits_for(ask: Ask) -> None:
    code, said, _ = ask("stragglers", "--live", "late")
    assert code == 0
    newest = json.loads(ask("show", "latest", "--json")[1])["run"]["run_id"]
    assert ask("stragglers", "--replay", "latest")[1] == ask("stragglers", "--replay", newest)[1]
    assert said.startswith("late (completed, 2 ranks): waited most for rank 1 in input, ")
    assert " a step in steps " in said.splitlines()[0]
    assert said.splitlines()[3].split()[:3] == ["rank", "1", "input"]
    followed = ask("stragglers", "--live", "late", "--follow", "0.1", "--json")[1]
    assert [episode["rank"] for episode in json.loads(followed)["episodes"]] == [1]  # it has ended: one look is all


def test_a_run_in_progress_is_listed_with_the_rank_it_waits_for_now() -> None:
    episode = Episode(2, "compute", 40, None, 1, 1.5, None, 0.05, 0.4)
    past = replace(episode, rank=None, phase="fabric", last_step=20, first_step=5, lag_seconds=1.0)
    slowdown = Slowdown(1.25, (), (1.0, 1.0, 1.2, 1.01), ())
    answer = RunStragglers("r", "running", 4, 60, 59, None, (past, episode), slowdown, (), ("x",))
    text = live_text(answer)
    assert text.startswith("r (running, 4 ranks): waits for rank 2 in compute, 50.0 ms a step since step 40\n")
    assert text.splitlines()[3].split()[:3] == ["the", "fabric", "fabric"]
    assert "with equal ranks it would be 1.25x faster, with rank 2 alone as the others 1.20x\n" in text
    assert text.endswith("warning: x")
    assert "waits for no rank" in live_text(replace(answer, episodes=(past,)))


def test_both_doors_tell_the_same(ask: Ask, home: Path) -> None:
    questions = [("stragglers", "--limit", "5"), ("stragglers", "--live", "late"), ("regressions",)]
    here = [json.loads(ask(*words, "--json")[1]) for words in questions]
    with answering(home) as server:
        there = [json.loads(ask(*words, "--json", "--server", server)[1]) for words in questions]
        wrong = ask("stragglers", "--topology", "x", "--server", server)
        followed = ask("stragglers", "--live", "late", "--follow", "1", "--server", server)
    assert here == there
    assert (wrong[0], "--topology: expected without a server" in wrong[2]) == (2, True)
    assert (followed[0], "--follow: expected without a server" in followed[2]) == (2, True)


def test_a_regression_is_reported_with_what_changed(ask: Ask) -> None:
    code, said, _ = ask("regressions", "--system", "other")
    assert code == 0
    assert said.startswith(("bert on other: slower since 2026-01-04 ", "nanogpt on other: slower since 2026-01-04 "))
    assert said.count("no recorded fact of the runs changed with it") == 2
    assert ask("regressions", "--system", "lab")[1].startswith("No lasting change in ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("stragglers", "--runs", "0"), "expected 1 or more"),
        (("stragglers", "--runs", "100001"), "runs 100001: expected 1 to 100000"),
        (("stragglers", "--follow", "3"), "--follow: expected together with --live"),
        (("stragglers", "--live", "nobody"), "run 'nobody' is not stored"),
        (("stragglers", "--topology", "/nowhere"), "/nowhere: No such file"),
        (("regressions", "--runs", "x"), "expected 1 or more"),
    ],
)
def test_unanswerable_questions_are_refused(ask: Ask, words: tuple[str, ...], message: str) -> None:
    code, said, complaint = ask(*words)
    assert (code, said) == (2, "")
    assert message in complaint


def test_nothing_stored_says_what_records_it(ask: Ask) -> None:
    code, said, _ = ask("stragglers", "--system", "elsewhere")
    assert code == 0
    assert said.startswith("No straggler: none of 0 compared")
    assert "warning: no run is stored: crosswind run -- CMD records one" in said
