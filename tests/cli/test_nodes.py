import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.cli.main import main
from crosswind.dashboards.wording import NONE
from crosswind.data.lake.lake import to_table
from crosswind.data.schema.metric import Scalar, with_node_keys
from crosswind.data.schema.run import Run, RunState
from crosswind.data.store.store import Store
from crosswind.ingest.agent.self_metrics import AGENT, PAGE_BYTES
from crosswind.ingest.agent.sweep import COLLECTOR

SECOND = 1_000_000_000
PAGES = 40 * 2**20 // PAGE_BYTES
REASON = "UnavailableError: /sys/class/infiniband: No such file or directory"
Ask = Callable[..., str]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("CROSSWIND_DATABASE", raising=False)
    monkeypatch.delenv("CROSSWIND_SPOOL", raising=False)
    return tmp_path / "home"


@pytest.fixture
def ask(home: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    def ask(*words: str, code: int = 0) -> str:
        assert main(list(words)) == code
        said = capsys.readouterr()
        return said.out + said.err

    return ask


def hear(home: Path, node: str, ago_seconds: int, *, up: int = 1) -> int:
    """Three sweeps of a node, the last so long ago, at 2 % of a core; gives the time of the last."""
    last_ns = time.time_ns() - ago_seconds * SECOND
    times = [last_ns - 2 * SECOND, last_ns - SECOND, last_ns]
    keys = {"ts_ns": times, "node": [node] * 3, "boot_id": ["b"] * 3, "mono_ns": times}
    own: dict[str, list[Scalar]] = {"device": ["agent"] * 3, "cpu_seconds_total": [1.0, 1.02, 1.04]}
    own |= {"missed_ticks_total": [3, 3, 4], "lost_sweeps_total": [0, 0, 0], "lateness_seconds": [0.002] * 3}
    own |= {"resident_bytes": [PAGES] * 3, "clock_error_max_seconds": [0.016] * 3, "clock_synchronized": [up] * 3}
    looked = {"device": ["infiniband"] * 3, "up": [up] * 3, "reason": [None if up else REASON] * 3}
    with Store.open(home) as store:
        store.lake.append(f"agent-{node.encode().hex()}", to_table(with_node_keys(AGENT), keys | own))
        store.lake.append(f"collector-{node.encode().hex()}", to_table(with_node_keys(COLLECTOR), keys | looked))
    return last_ns


def test_nodes_are_listed_newest_first_and_what_is_down_once_below(ask: Ask, home: Path) -> None:
    for number, ago_seconds in enumerate((1800, 600, 1200, 2400)):
        hear(home, f"n{number}", ago_seconds, up=int(number == 1))
    heading, first, second, third, fourth, between, down, reason = ask("nodes").splitlines()
    assert heading.split()[:3] == ["node", "last", "sweep"]
    assert [line.split()[0] for line in (first, second, third, fourth)] == ["n1", "n2", "n0", "n3"]
    assert first.split()[:3] == ["n1", "10", "min"]
    sweeps = ["ago", "3", "2.00", "ms", "1", "0", "2", "%", "40", "MiB"]
    assert first.split()[5:] == [*sweeps, "16.0", "ms", "1", "0"]
    assert second.split()[5:] == [*sweeps, "not", "kept", "0", "1"]
    assert (between, down.split()) == ("", ["down", "nodes", "which", "why"])
    assert reason.split(maxsplit=6) == ["infiniband", "3", "n0,", "n2,", "n3", "UnavailableError:", REASON[18:]]


def test_only_as_much_is_looked_at_as_was_asked_for(ask: Ask, home: Path) -> None:
    hear(home, "old", 7000)
    last_ns = hear(home, "new", 60)
    [node] = json.loads(ask("nodes", "--json"))
    assert (node["node"], node["last_sweep_ns"], node["sources_up"]) == ("new", last_ns, ["infiniband"])
    assert [row["node"] for row in json.loads(ask("nodes", "--since", "2h", "--json"))] == ["new", "old"]
    assert ask("nodes", "--since", "5s") == "No samples with --since 5s: --since 30d looks further back.\n"


def test_a_real_agents_sweep_is_seen_once_it_is_stored(ask: Ask) -> None:
    ask("agent", "--once")
    assert ask("nodes") == "No samples yet: run crosswind agent, then crosswind ingest or crosswind sync.\n"
    assert json.loads(ask("nodes", "--json")) == []
    ask("ingest")
    [node] = json.loads(ask("nodes", "--json"))
    assert (node["sweeps"], node["cpu_ratio"], node["missed_ticks"]) == (1, None, None)
    assert {"cpu", "memory"} <= set(node["sources_up"])
    line = ask("nodes").splitlines()[1]
    assert line.count(NONE) >= 4  # one sweep tells no lateness, cost or loss


def test_a_nodes_name_moves_no_cursor(ask: Ask, home: Path) -> None:
    hear(home, "\x1b[2J", 60)
    assert ask("nodes").replace("\n", "").isprintable()


def test_what_is_no_time_is_refused(ask: Ask) -> None:
    assert "--since '1 h': expected a time such as 90s, 1h" in ask("nodes", "--since=1 h", code=2)


def test_no_time_is_too_long(ask: Ask, home: Path) -> None:
    hear(home, "n1", 60)
    assert len(json.loads(ask("nodes", "--json", "--since", "999999999d"))) == 1


def test_one_node_is_shown_with_its_history(ask: Ask, home: Path) -> None:
    hear(home, "n1", 60)
    now_ns = time.time_ns()
    with Store.open(home) as store, store.catalog.write() as session:
        facts = {"nodes": ("n1",), "started_ns": now_ns - 90 * SECOND, "ended_ns": now_ns - 30 * SECOND}
        session.runs.merge(Run("r1", "gpt", "lab", RunState.COMPLETED, **facts))  # type: ignore[arg-type]
    lines = ask("nodes", "n1").splitlines()
    assert lines[0] == "n1 of lab"
    assert lines[1].startswith("last sample ")
    assert lines[2] == "now: nothing"
    assert lines[lines.index("runs") + 2].split()[:3] == ["r1", "gpt", "completed"]
    answer = json.loads(ask("nodes", "n1", "--since", "2d", "--json"))
    assert [run["run_id"] for run in answer["history"]["runs"]] == ["r1"]
    assert "node 'n9': nothing of it is stored" in ask("nodes", "n9", code=2)
