import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.serving import running

from crosswind.api.app import create_app
from crosswind.api.server import server_of
from crosswind.cli.main import main
from crosswind.cli.verbs.sync import Round, take_all
from crosswind.data.schema.errors import MalformedError
from crosswind.data.schema.metric import NODE_KEYS, Column, MetricSet
from crosswind.data.store.store import Store
from crosswind.ingest.spool.spool import SpoolWriter, sealed_segments

HEAT = MetricSet("heat", "a sensor", (*NODE_KEYS, Column("heat_celsius", "heat", scale=0.1)))
Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CROSSWIND_HOME", str(tmp_path / "home"))
    for name in ("CROSSWIND_SPOOL", "CROSSWIND_DATABASE", "CROSSWIND_TOKEN", "CROSSWIND_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home"


@pytest.fixture
def ask(home: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    def ask(*words: object) -> tuple[int, str, str]:
        code = main([str(word) for word in words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return ask


def fill(spool: Path, node: str, segments: int = 1) -> list[tuple[str, int]]:
    for number in range(segments):
        with SpoolWriter(spool, f"agent.{node}") as writer:
            columns = {"ts_ns": [number], "node": [node], "device": ["cpu0"], "heat_celsius": [400]}
            writer.append_rows(HEAT, columns)
    return [(node, number) for number in range(segments)]


def stored(home: Path) -> list[tuple[str, int]]:
    with Store.open(home) as store, store.lake.connect() as connection:
        return connection.execute("select node, ts_ns from heat order by all").fetchall()


def test_the_spools_of_all_nodes_below_a_folder_are_stored(ask: Ask, home: Path, tmp_path: Path) -> None:
    written = fill(tmp_path / "shared" / "n1", "n1", 2)
    written += fill(tmp_path / "shared" / "rack2" / "n2" / "spool", "n2")
    code, said, _ = ask("sync", tmp_path / "shared")
    assert (code, said) == (0, "2 spools: 3 batches taken (0 were there before), 3 rows, 0 wait\n")
    assert stored(home) == written
    assert json.loads(ask("sync", tmp_path / "shared", "--json")[1])["batches"] == 0


def test_without_a_path_it_is_this_installations_spool(ask: Ask, home: Path) -> None:
    written = fill(home / "spool", "n1")
    assert ask("sync")[0] == 0
    assert stored(home) == written


def test_what_living_agents_still_write_is_left_to_them(ask: Ask, home: Path, tmp_path: Path) -> None:
    fill(tmp_path / "n1", "n1")
    with SpoolWriter(tmp_path / "n1", "agent.n1") as writer:
        writer.append_rows(HEAT, {"ts_ns": [7], "node": ["n1"]})
        assert json.loads(ask("sync", tmp_path / "n1", "--json")[1])["batches"] == 1
        assert len(list((tmp_path / "n1").glob("*.open"))) == 1
    assert json.loads(ask("sync", tmp_path / "n1", "--json")[1])["batches"] == 1
    assert stored(home) == [("n1", 0), ("n1", 7)]


def test_the_stores_own_folders_are_no_spools(ask: Ask, home: Path) -> None:
    fill(home / "lake" / "odd", "n1")
    fill(home / "rejected", "n1")
    written = fill(home / "spool", "n2")
    assert json.loads(ask("sync", home, "--json")[1])["spools"] == 1
    assert stored(home) == written
    assert len(sealed_segments(home / "rejected")) == 1


def test_a_link_to_another_folder_is_not_followed(ask: Ask, tmp_path: Path) -> None:
    fill(tmp_path / "elsewhere", "n1")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "n1").symlink_to(tmp_path / "elsewhere")
    assert json.loads(ask("sync", tmp_path / "shared", "--json")[1])["spools"] == 0


def test_a_folder_that_is_not_there_and_a_strange_pace_are_refused(ask: Ask, tmp_path: Path) -> None:
    code, _, complaint = ask("sync", tmp_path / "none")
    assert (code, "no such folder" in complaint) == (75, True)
    code, _, complaint = ask("sync", tmp_path, "--every", "0")
    assert (code, "--every 0.0" in complaint) == (2, True)
    code, _, complaint = ask("sync", tmp_path, "--to", "store.test")
    assert (code, "expected http://HOST:PORT" in complaint) == (2, True)


def test_a_server_gets_every_spool_and_what_it_does_not_take_waits(ask: Ask, home: Path, tmp_path: Path) -> None:
    written = fill(tmp_path / "shared" / "n1", "n1", 2) + fill(tmp_path / "shared" / "n2", "n2")
    address = tmp_path / "server.sock"
    code, said, _ = ask("sync", tmp_path / "shared", "--to", f"unix://{address}", "--json")
    assert (code, json.loads(said)["waiting"], json.loads(said)["rows"]) == (75, 3, None)
    assert all("does not answer" in problem for problem in json.loads(said)["problems"])
    with Store.open(tmp_path / "served") as store:
        server = server_of(create_app(store))
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(address))
            listening.listen()
            with running(server, listening):
                code, said, _ = ask("sync", tmp_path / "shared", "--to", f"unix://{address}")
    assert (code, said) == (0, "2 spools: 3 batches taken (0 were there before), 0 wait\n")
    assert stored(tmp_path / "served") == written


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), MalformedError("odd")])
def test_a_spool_that_fails_is_reported_and_the_others_are_taken(tmp_path: Path, error: Exception) -> None:
    fill(tmp_path / "n1", "n1")
    fill(tmp_path / "n2", "n2")
    taken = []

    def take(spool: Path, _: Round) -> None:
        if spool.name == "n1":
            raise error
        taken.append(spool.name)

    done = take_all([tmp_path], take, tmp_path / "home")
    assert (taken, done.failed, done.problems) == (["n2"], 1, [str(error)])


def test_a_spool_that_fails_shows_in_the_exit_code(ask: Ask, tmp_path: Path) -> None:
    with SpoolWriter(tmp_path / "n1", "agent.n1") as writer:
        writer.append_rows(HEAT, {"ts_ns": [7], "node": ["n1"]})
        (tmp_path / "n1" / "ingest.lock").mkdir()
        code, said, _ = ask("sync", tmp_path / "n1", "--json")
    assert (code, json.loads(said)["failed"], json.loads(said)["waiting"]) == (75, 1, 0)


def test_it_looks_again_until_it_is_asked_to_stop(home: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    command = [sys.executable, "-m", "crosswind.cli.main", "sync", str(tmp_path / "shared"), "--every", "0.1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ}) as process:
        assert process.stdout
        answer = json.loads(process.stdout.readline())
        assert (answer["spools"], answer["batches"]) == (0, 0)
        fill(tmp_path / "staging", "n1")
        (tmp_path / "staging").rename(tmp_path / "shared" / "n1")
        assert json.loads(process.stdout.readline())["batches"] == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert stored(home) == [("n1", 0)]
