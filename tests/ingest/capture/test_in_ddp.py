"""`crosswind run --trace` around real DDP training over gloo: the traces are there, and stored with the run."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.api.several.servers import ServerProcess

from crosswind.ingest.reader.reader import Report
from crosswind.ingest.readers.traces.kineto import KinetoReader
from crosswind.models.traces.steps import steps

TRAIN = ("-m", "crosswind.ingest.lab.train", "--batch", "2")
CROSSWIND = (sys.executable, "-m", "crosswind.cli.main")


def run(home: Path, *words: str) -> str:
    """Run a verb, and return its output."""
    names = os.environ | {"CROSSWIND_HOME": str(home), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*CROSSWIND, *words], env=names, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ranks_of(home: Path) -> dict[int, int]:
    """The traced ranks, each with its number of marked steps, as our reader reads them."""
    read = {}
    for path in home.glob("traces/*/*.json.gz"):
        for trace in KinetoReader().read(path, Report(str(path), "kineto")):
            read[trace.rank] = len(steps(trace))
    return read


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The home of a run of two ranks, one of which was to be traced, and its output."""
    home = tmp_path_factory.mktemp("trained") / "home"
    program = (sys.executable, *TRAIN, "--ranks", "2", "--steps", "16")
    return home, run(home, "run", "--no-agent", "--trace", "1:12-13", "--", *program)


def test_two_ranks_one_of_them_asked_for(trained: tuple[Path, str], tmp_path: Path) -> None:
    home, output = shutil.copytree(trained[0], tmp_path / "home"), trained[1]
    assert output.splitlines()[-1].startswith("loss")
    assert len(output.splitlines()) == 1  # nothing of the profiler's
    assert ranks_of(home) == {1: 2}
    shown = run(home, "show")
    assert "trace.rank1.step12-13 asked for (by hand)" in shown
    assert f"traces/{next(home.glob('traces/*/')).name}/rank1.step12-13.json.gz" in shown
    report = json.loads(run(home, "trace", "--run", "latest", "--json"))
    assert [rank["rank"] for rank in report["ranks"]] == [1]


def test_traces_reach_a_server_that_was_away_and_are_stored_once(trained: tuple[Path, str], tmp_path: Path) -> None:
    spool, home = shutil.copytree(trained[0] / "incoming", tmp_path / "spool"), tmp_path / "server"
    server = ServerProcess(home, f"sqlite:///{home / 'catalog.sqlite'}")
    send = [*CROSSWIND, "sync", str(spool), "--to", server.url]
    away = subprocess.run(send, capture_output=True, text=True, check=False, timeout=60)
    assert (away.returncode, len(list(spool.glob("*.segment"))) > 3) == (75, True)
    copies = {path: path.read_bytes() for path in spool.glob("*.segment")}
    server.start()
    try:
        server.await_ready()
        first = traced_after(send, server)
        for path, content in copies.items():
            path.write_bytes(content)
        assert traced_after(send, server) == first
        assert first["traced_ranks"] == 1
    finally:
        server.kill()


def traced_after(send: list[str], server: ServerProcess) -> dict[str, Any]:
    """Send the spool, and return what the server says of the only run with traces."""
    subprocess.run(send, check=True, timeout=120, stdout=subprocess.DEVNULL)
    with server.client() as client:
        [traced] = client.get("/v1/traces").json()["traces"]
        report = client.get(f"/v1/runs/{traced['run_id']}/trace").json()
        assert [rank["rank"] for rank in report["ranks"]] == [1]
        assert client.get(f"/runs/{traced['run_id']}/trace.csv").text.count("\n") == 2
    return dict(traced)


@pytest.mark.thorough
def test_the_slow_rank_of_four_is_traced_and_named(tmp_path: Path) -> None:
    program = (sys.executable, *TRAIN, "--ranks", "4", "--steps", "70", "--fault", "slow_input:2:300")
    words = ("--trace", "auto", "--trace-ranks", "2", "--trace-pause", "0", "--trace-captures", "8")
    run(tmp_path, "run", "--no-agent", *words, "--", *program)
    assert ranks_of(tmp_path)[2] == 3
    report = json.loads(run(tmp_path, "trace", "--run", "latest", "--json"))
    assert {rank["rank"] for rank in report["ranks"]} == ranks_of(tmp_path).keys()
    assert re.search(r"trace\.rank2\.step\S+ culprit \(", run(tmp_path, "show"))
