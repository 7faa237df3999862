import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from tests.needs import ROOT, needs

from crosswind.data.schema.occupancy import Allocation, Source
from crosswind.ingest.occupancy.job_files import JobFiles

SCRIPTS = Path(__file__).parents[2] / "deploy" / "slurm"
HOST = socket.gethostname()
# What slurmd 22.05 gives to a prolog, cut to what the script looks at; it sets no PATH.
GIVEN = {
    "SLURM_CLUSTER_NAME": "lab",
    "SLURM_JOB_CPUS_PER_NODE": "8(x2)",
    "SLURM_JOB_GPUS": "0,3",
    "SLURM_JOB_ID": "4711",
    "SLURM_JOB_RESTART_COUNT": "2",
    "SLURM_JOB_UID": "1000",
    "SLURM_NODELIST": "n[1-2]",
    "SLURMD_NODENAME": HOST,
}
SHELLS = [shell for shell in ("dash", "bash --posix", "busybox sh") if shutil.which(shell.split()[0])]
every_shell = pytest.mark.parametrize("shell", SHELLS)


def run(script: str, directory: Path, shell: str = "sh", **given: str) -> None:
    """Runs a script as slurmd does. It may neither fail nor say anything, nor take long."""
    environment = {**GIVEN, "CROSSWIND_JOB_DIRECTORY": str(directory), **given}
    path = shutil.which(shell.split(maxsplit=1)[0])
    assert path
    words = [path, *shell.split()[1:], str(SCRIPTS / script)]
    result = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, cwd="/")
    assert (result.returncode, result.stdout) == (0, "")


def only_file(directory: Path) -> dict[str, object]:
    [path] = directory.iterdir()
    value: dict[str, object] = json.loads(path.read_text())
    return value


def allocations(directory: Path) -> list[Allocation]:
    files = JobFiles(directory, "agent")
    files.refresh()
    assert files.garbled == 0
    return [file.allocation for file in files.files.values()]


@every_shell
def test_prolog_and_epilog_tell_the_agent_start_and_end(tmp_path: Path, shell: str) -> None:
    directory = tmp_path / "run" / "job.d"
    before = time.time_ns()
    run("prolog.sh", directory, shell)
    [begun] = allocations(directory)
    assert begun.started_ns is not None
    assert before - 10**9 < begun.started_ns < time.time_ns()  # a date without nanoseconds cuts them off
    assert begun == Allocation(
        "4711", HOST, "agent", Source.PROLOG, "lab", 2, None, 1000, begun.started_ns, None, ("0", "3"), 8
    )
    run("epilog.sh", directory, shell)
    [ended] = allocations(directory)
    assert ended.ended_ns is not None
    assert ended.ended_ns >= begun.started_ns
    assert (ended.started_ns, ended.gpus, ended.cpus) == (begun.started_ns, ("0", "3"), 8)
    assert [path.name for path in directory.iterdir()] == ["4711.json"]


def test_a_second_epilog_changes_nothing(tmp_path: Path) -> None:
    run("prolog.sh", tmp_path)
    run("epilog.sh", tmp_path)
    ended = only_file(tmp_path)
    run("epilog.sh", tmp_path)
    assert only_file(tmp_path) == ended


def test_an_epilog_without_a_prolog_tells_the_end_alone(tmp_path: Path) -> None:
    run("epilog.sh", tmp_path)
    [allocation] = allocations(tmp_path)
    assert (allocation.job_id, allocation.node, allocation.restart_count) == ("4711", HOST, 2)
    assert (allocation.started_ns, allocation.ended_ns is not None) == (None, True)


def test_the_prolog_of_a_requeued_job_begins_anew(tmp_path: Path) -> None:
    run("prolog.sh", tmp_path)
    run("epilog.sh", tmp_path)
    run("prolog.sh", tmp_path, SLURM_JOB_RESTART_COUNT="3")
    [allocation] = allocations(tmp_path)
    assert (allocation.restart_count, allocation.ended_ns) == (3, None)


def test_nodes_that_share_a_host_have_files_of_their_own(tmp_path: Path) -> None:
    for node in ("node1", "node2"):
        run("prolog.sh", tmp_path, SLURMD_NODENAME=node)
    run("epilog.sh", tmp_path, SLURMD_NODENAME="node2")
    assert {place.node: place.ended_ns is None for place in allocations(tmp_path)} == {"node1": True, "node2": False}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"SLURM_JOB_GPUS": ""}, {"gpus": []}),
        ({"SLURM_JOB_CPUS_PER_NODE": "4"}, {"cpus": 4}),
        ({"SLURM_JOB_CPUS_PER_NODE": "4,2(x3)"}, {"cpus": None}),
        ({"SLURM_JOB_RESTART_COUNT": ""}, {"restart_count": 0}),
        ({"SLURM_JOB_UID": "07"}, {"uid": None}),
        ({"SLURM_JOB_UID": '0,"ended_ns":1'}, {"uid": None}),
        ({"SLURM_CLUSTER_NAME": 'a","uid":0,"x":"'}, {"system": ""}),
        ({"SLURM_CLUSTER_NAME": "a\\"}, {"system": ""}),
        ({"SLURM_CLUSTER_NAME": "$(touch /tmp/crosswind-was-here)"}, {"system": ""}),
        ({"SLURM_JOB_GPUS": '0","*'}, {"gpus": []}),
        ({"SLURM_NODELIST": "n[1-2],m7"}, {"nodelist": "n[1-2],m7"}),
        ({"SLURM_JOB_NODELIST": "n\n2"}, {"nodelist": ""}),
    ],
)
def test_a_value_that_json_could_misunderstand_is_left_out(
    tmp_path: Path, given: dict[str, str], expected: dict[str, object]
) -> None:
    run("prolog.sh", tmp_path, **given)
    written = only_file(tmp_path)
    assert {name: written[name] for name in expected} == expected
    assert "ended_ns" not in written
    assert written["job_id"] == "4711"
    assert not Path("/tmp/crosswind-was-here").exists()


@pytest.mark.parametrize("job_id", ["", "../../etc/passwd", ".hidden", "a b", "4711;reboot"])
@pytest.mark.parametrize("script", ["prolog.sh", "epilog.sh"])
def test_a_job_id_that_is_no_name_makes_no_file(tmp_path: Path, script: str, job_id: str) -> None:
    run(script, tmp_path, SLURM_JOB_ID=job_id)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("script", ["prolog.sh", "epilog.sh"])
def test_a_directory_that_cannot_be_had_never_fails_the_job(tmp_path: Path, script: str) -> None:
    (tmp_path / "file").write_text("")
    run(script, tmp_path / "file" / "job.d")
    run(script, Path("/proc/nowhere"))


@pytest.mark.parametrize("script", ["prolog.sh", "epilog.sh"])
def test_a_directory_behind_a_link_is_not_written(tmp_path: Path, script: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (tmp_path / "job.d").symlink_to(target)
    run(script, tmp_path / "job.d")
    assert list(target.iterdir()) == []


@needs(ROOT, "giving a directory away", unless=os.geteuid() == 0)
@pytest.mark.parametrize("script", ["prolog.sh", "epilog.sh"])
def test_somebody_elses_directory_is_not_written(tmp_path: Path, script: str) -> None:
    (tmp_path / "job.d").mkdir()
    os.chown(tmp_path / "job.d", 65_534, 65_534)
    run(script, tmp_path / "job.d")
    assert list((tmp_path / "job.d").iterdir()) == []


def test_the_epilog_clears_away_what_ended_long_ago_and_nothing_that_runs(tmp_path: Path) -> None:
    run("prolog.sh", tmp_path, SLURM_JOB_ID="1")
    run("prolog.sh", tmp_path, SLURM_JOB_ID="2")
    run("epilog.sh", tmp_path, SLURM_JOB_ID="2")
    for path in tmp_path.iterdir():
        os.utime(path, (time.time() - 7200,) * 2)
    run("prolog.sh", tmp_path, SLURM_JOB_ID="3")
    run("epilog.sh", tmp_path, SLURM_JOB_ID="3")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.json", "3.json"]
