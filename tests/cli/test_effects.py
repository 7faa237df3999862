"""`crosswind counters` and `crosswind interference`, by the store at hand and through a server."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.asking import Ask, asking
from tests.models.interference.stored import neighbourhood
from tests.serving import answering

from crosswind.cli.verbs.interference import interference_text
from crosswind.data.samples.lab_runs import load_lab_samples
from crosswind.data.schema.answers.effects import (
    Interference,
    Neighbour,
    NeighbourEffect,
    NeighbourKind,
    NeighbourScope,
)
from crosswind.data.store.store import Store


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lab's measured runs."""
    home = tmp_path_factory.mktemp("lab") / "home"
    with Store.open(home) as store:
        load_lab_samples(store)
    return home


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """60 runs, of which mallory's jobs slow every fifth down from the next node; nothing was sampled."""
    home = tmp_path_factory.mktemp("shared") / "home"
    with Store.open(home) as store:
        neighbourhood(store, node="n2")
    return home


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    for name in ("CROSSWIND_SERVER", "CROSSWIND_TOKEN", "CROSSWIND_TOKEN_FILE", "CROSSWIND_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    return asking(capsys)


@pytest.fixture
def in_lab(ask: Ask, lab: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.setenv("CROSSWIND_HOME", str(lab))
    monkeypatch.setenv("CROSSWIND_SYSTEM", "fault-lab")
    return ask


@pytest.fixture
def in_shared(ask: Ask, shared: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.setenv("CROSSWIND_HOME", str(shared))
    monkeypatch.setenv("CROSSWIND_SYSTEM", "lab")
    return ask


def rounded(said: str) -> Any:
    """The last digits depend on how many threads add up."""
    return json.loads(said, parse_float=lambda digits: round(float(digits), 6))


@pytest.mark.thorough
def test_both_doors_tell_the_same(in_lab: Ask, lab: Path) -> None:
    words = ("--workload", "embedding-recommender", "--system", "fault-lab", "--json")
    here = [rounded(in_lab(verb, *words)[1]) for verb in ("counters", "interference")]
    with answering(lab) as server:
        there = [rounded(in_lab(verb, *words, "--server", server)[1]) for verb in ("counters", "interference")]
        code, _, complaint = in_lab("interference", "--system", "nowhere", "--server", server)
        refused = in_lab("interference", "--topology", "t", "--server", server)
    assert here == there
    assert here[0]["counters"][0]["shown"]["name"]
    assert (code, "known are fault-lab" in complaint) == (2, True)
    assert (refused[0], "--topology: expected without a server" in refused[2]) == (2, True)


def test_counters_are_a_table_with_what_matters_first(in_lab: Ask) -> None:
    code, said, _ = in_lab("counters", "--workload", "embedding-recommender", "--limit", "3")
    lines = said.splitlines()
    assert code == 0
    assert lines[0] == ("embedding-recommender on fault-lab: 123 of 123 completed runs compared with their cohorts")
    assert "go with slow runs (q < 0.05)" in lines[1]
    assert lines[3].split() == ["counter", "rho", "90", "%", "per", "deviation", "q", "steady", "trees", "distance"]
    assert lines[4].startswith("* ")
    assert lines[7].endswith("counters more: --limit")


def test_neighbours_are_printed_one_a_line(in_lab: Ask) -> None:
    code, said, _ = in_lab("interference")
    assert code == 0
    lines = said.splitlines()
    assert lines[1].startswith("60 runs had neighbours: 0 users, 3 workloads, 0 jobs; 3 candidates")
    assert lines[2].startswith("workload image-classifier: 40 runs next to it took 1.")
    assert any(line.startswith("warning: no user is known") for line in lines)


def test_a_topology_tells_of_neighbours_on_the_switch_under_pseudonyms(in_shared: Ask, tmp_path: Path) -> None:
    code, said, _ = in_shared("interference")
    assert (code, "nobody was beside any run" in said) == (0, True)
    topology = tmp_path / "topology.conf"
    topology.write_text("SwitchName=leaf1 Nodes=n[1-2]\nSwitchName=top Switches=leaf1\n")
    code, said, _ = in_shared("interference", "--topology", str(topology))
    assert code == 0
    assert said.splitlines()[2].startswith("user u-")
    assert "on the same switch: 12 runs next to it took 1.2" in said
    assert "mallory" not in said


def test_what_a_terminal_would_obey_is_not_printed() -> None:
    candidate = Neighbour(NeighbourKind.WORKLOAD, NeighbourScope.NODE, "\x1b[2Jbert")
    suspect = NeighbourEffect(candidate, 9, 0.5, 1.2, 1.2, 1.2, 0.9, 0.8, 1.0, 0.01, 0.01, 1.0)
    seen = {NeighbourKind.USER: 0, NeighbourKind.WORKLOAD: 1, NeighbourKind.JOB: 0}
    said = interference_text(Interference("s\x07", None, 30, 30, 9, seen, 1, 0, (suspect,), ()), 5)
    assert "workload ?[2Jbert: 9 runs next to it took 1.20x the time" in said
    assert said.replace("\n", "").isprintable()


def test_without_samples_counters_say_what_to_record(in_shared: Ask) -> None:
    code, said, _ = in_shared("counters")
    assert code == 0
    assert "no counter was tested, 0 were sampled" in said
    assert "warning: nothing was sampled on the runs' nodes" in said


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("counters", "--workload", "unheard-of"), 2, "no run of it has completed on system 'lab', known are bert"),
        (("interference", "--system", "nowhere"), 2, "known are lab"),
        (("interference", "--limit", "0"), 2, "expected 1 or more"),
        (("interference", "--topology", "/nowhere/topology.conf"), 2, "No such file"),
    ],
)
def test_unanswerable_questions_are_refused(in_shared: Ask, words: tuple[str, ...], code: int, message: str) -> None:
    exit_code, said, complaint = in_shared(*words)
    assert (exit_code, said) == (code, "")
    assert message in complaint
