"""Several ranks for real: torchrun over gloo, mpirun, and hosts of the fault lab of which one has a slow link."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import free_port
from tests.ingest.lab.traffic import in_a_lab
from tests.needs import program

from crosswind.ingest.lab.hosts.hosts import Host, hosts, limit_rate
from crosswind.ingest.spool.segment import RowsFrame
from crosswind.ingest.spool.spool import read_segment, sealed_segments

CHECK = ["-m", "crosswind", "check", "--json", "--seconds", "4"]
HOSTS, MEGABITS, SLOW, SLOW_MEGABITS = 4, 400, 2, 40
SECONDS = 120.0
HANGS = """
import sys, time
from crosswind.data.schema.errors import UnavailableError
from crosswind.ingest.preflight.meeting import meet

peers = meet(30.0)
assert peers.go_on(wanted=True)
if peers.place.rank:
    time.sleep(3.0)
    sys.exit()
try:
    peers.gather("here", 0.5)
except UnavailableError as error:
    print(error)
"""


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "CROSSWIND", "OMPI"))}
    return kept | {"CROSSWIND_HOME": str(home), "CROSSWIND_SYSTEM": "lab", "OMP_NUM_THREADS": "1"} | more


def meeting(rank: int, size: int, address: str, port: int) -> Mapping[str, str]:
    place = {"RANK": str(rank), "WORLD_SIZE": str(size), "CROSSWIND_NODE": f"n{rank}"}
    return place | {"MASTER_ADDR": address, "MASTER_PORT": str(port)}


def values(report: Mapping[str, Any], measure: str) -> dict[tuple[str, str | None], float]:
    return {(row["node"], row["peer"]): row["value"] for row in report["measured"] if row["measure"] == measure}


@pytest.mark.thorough
def test_two_ranks_of_torchrun_on_one_node_are_one_node(tmp_path: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command = [*torchrun, *CHECK, "--only", "loop,pairs,allreduce"]
    home = environment(tmp_path, CROSSWIND_NODE="n1")
    done = subprocess.run(command, env=home, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["nodes"], report["ranks"], report["method"]) == (["n1"], 2, "gloo")
    assert {row["measure"] for row in report["measured"]} == {"loop", "noise", "all_reduce"}
    assert len(values(report, "loop")) == 1
    [segment] = sealed_segments(tmp_path / "spool")
    rows = [frame for frame in read_segment(segment) if isinstance(frame, RowsFrame)]
    assert sum(len(frame.columns["value"]) for frame in rows) == len(report["measured"])


@pytest.mark.host
def test_ranks_of_mpirun_talk_over_mpi(tmp_path: Path) -> None:
    program("mpirun", "openmpi-bin")
    script = 'CROSSWIND_NODE=n$OMPI_COMM_WORLD_RANK exec "$@"'
    patient = (
        "--mca",
        "mpi_yield_when_idle",
        "1",
    )  # three ranks that spin on two cores would take turns of milliseconds
    ranks = [
        "mpirun",
        "--allow-run-as-root",
        "--oversubscribe",
        *patient,
        "-n",
        "3",
        "sh",
        "-c",
        script,
        "sh",
        sys.executable,
    ]
    command = [*ranks, *CHECK, "--seconds", "10", "--only", "loop,pairs,allreduce"]
    done = subprocess.run(
        command, env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["nodes"], report["method"]) == (["n0", "n1", "n2"], "mpi")
    assert sorted(values(report, "bandwidth")) == [("n0", "n1"), ("n0", "n2"), ("n1", "n2")]
    assert len(values(report, "loop")) == 3
    sizes = sorted(row["size_bytes"] for row in report["measured"] if row["measure"] == "all_reduce")
    assert sizes[0] == 1024  # of the longer ones, those for which a busy machine leaves the time


@pytest.mark.thorough
def test_a_rank_whose_results_do_not_come_is_named(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-c", HANGS]
    ranks = [
        subprocess.Popen(
            command, env=environment(tmp_path, **meeting(rank, 3, "127.0.0.1", port)), stdout=subprocess.PIPE, text=True
        )
        for rank in range(3)
    ]
    said, *_ = [rank.communicate(timeout=SECONDS)[0] for rank in ranks]
    assert said == "ranks 1 (n1), 2 (n2): no results within 0 s\n"


@pytest.fixture(scope="module")
def lab_report(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Mapping[str, Any]]:
    """Exit code and answer of a check over four hosts, the third with a link of 40 Mbit/s, the others with 400."""
    home = tmp_path_factory.mktemp("lab")
    with hosts(HOSTS, megabits=MEGABITS) as net:
        limit_rate(net[SLOW], SLOW_MEGABITS)
        ranks = [started(host, rank, net, home) for rank, host in enumerate(net)]
        outputs = [rank.communicate(timeout=SECONDS) for rank in ranks]
    assert [output for output, _ in outputs[1:]] == [""] * (HOSTS - 1)
    assert outputs[0][0], outputs
    return ranks[0].returncode, json.loads(outputs[0][0])


def started(host: Host, rank: int, net: tuple[Host, ...], home: Path) -> "subprocess.Popen[str]":
    place = meeting(rank, HOSTS, net[0].address, 29500)
    command = host.command([sys.executable, *CHECK, "--seconds", "8", "--only", "pairs,allreduce"])
    variables = environment(home, **place, GLOO_SOCKET_IFNAME=host.device)
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.thorough
@in_a_lab
def test_the_node_behind_a_slow_link_is_left_out_and_no_other(
    lab_report: tuple[int, Mapping[str, Any]],
) -> None:
    code, report = lab_report
    assert report["verdict"]["excluded"] == [f"n{SLOW}"]
    assert (code, report["exclude"]) == (1, f"--exclude=n{SLOW}")
    assert "bandwidth" in {blame["measure"] for blame in report["verdict"]["blames"]}
    assert {blame["basis"] for blame in report["verdict"]["blames"]} == {"other nodes of this check"}


@pytest.mark.thorough
@in_a_lab
def test_every_pair_was_measured_and_the_slow_links_are_as_slow_as_they_were_made(
    lab_report: tuple[int, Mapping[str, Any]],
) -> None:
    """Within 40 %: a bucket lets the first bytes through at once, and headers take a few; a busy machine takes more of
    the fast ones.
    """
    bandwidths = values(lab_report[1], "bandwidth")
    assert len(bandwidths) == HOSTS * (HOSTS - 1) // 2
    slow = [value for pair, value in bandwidths.items() if f"n{SLOW}" in pair]
    assert slow == [pytest.approx(SLOW_MEGABITS * 1e6 / 8, rel=0.4)] * (HOSTS - 1)
    assert min(value for pair, value in bandwidths.items() if f"n{SLOW}" not in pair) > 2 * max(slow)
