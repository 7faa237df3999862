from pathlib import Path

import pytest

from crosswind.data.schema.occupancy import Source
from crosswind.ingest.occupancy.confinement import Confinement, confinement_of
from crosswind.ingest.occupancy.environment import Identity, identity_of
from crosswind.ingest.occupancy.occupancy import Occupancy

# /proc/<pid>/cgroup under Slurm with control groups of version 2, of version 1, and with two slurmd on a host.
SECOND = b"0::/system.slice/slurmstepd.scope/job_1392969/step_0/user/task_0\n"
FIRST = (
    b"12:memory:/slurm/uid_2101171/job_280678/step_interactive/task_0\n"
    b"11:devices:/slurm/uid_2101171/job_280678/step_interactive/task_0\n1:name=systemd:/system.slice/slurmd.service\n"
)
SHARED = b"0::/system.slice/node1_slurmstepd.scope/job_7/step_batch/user/task_special\n"


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (SECOND, Confinement("1392969", "0")),
        (FIRST, Confinement("280678", "interactive")),
        (SHARED, Confinement("7", "batch", "node1")),
        (b"0::/system.slice/slurmstepd.scope/job_42/step_extern/user\n", Confinement("42", "extern")),
        (b"0::/system.slice/slurmstepd.scope/job_42\n", Confinement("42")),
    ],
)
def test_the_control_group_names_job_and_step(groups: bytes, expected: Confinement) -> None:
    assert confinement_of(groups) == expected


@pytest.mark.parametrize(
    "groups",
    [
        b"",
        b"0::/\n",
        b"0::/system.slice/slurmstepd.scope/system\n",
        b"0::/system.slice/slurmstepd.scope/job_hello/step_0\n",
        b"0::/user.slice/user-1000.slice/slurmstepd.scope/job_42/step_0\n",  # made by a user below his own group
        b"0::/user.slice/slurm/uid_0/job_42\n",
        b"0::/user.slice/user-1000.slice/x:/system.slice/slurmstepd.scope/job_42/step_0\n",  # a folder called `x:`
        b"0::/user.slice/user-1000.slice/0::/system.slice/slurmstepd.scope/job_42\n",
        b"4:memory:/user.slice/user-1000.slice/4:memory:/slurm/uid_1000/job_42\n",
        b"0::/system.slice/slurmstepd.scope/job_12345678901/step_0\n",  # more digits than any job has
        b"\xff" * 4000,
    ],
)
def test_outside_of_a_job_there_is_none(groups: bytes) -> None:
    assert confinement_of(groups) is None


def test_the_kernel_is_believed_against_the_environment() -> None:
    liar = identity_of(b"SLURM_JOB_ID=99\0SLURM_PROCID=5\0SLURM_STEP_ID=3\0SLURM_JOB_GPUS=0,1")
    assert liar.confined_to(Confinement("7", "0")) == Identity(job_id="7", step_id="0", is_allocated=True)


def test_what_the_environment_says_of_its_own_job_stays() -> None:
    task = identity_of(b"SLURM_JOB_ID=7\0SLURM_PROCID=5\0SLURMD_NODENAME=n1")
    assert task.confined_to(Confinement("7", "batch", "other")) == Identity(
        job_id="7", step_id="batch", rank=5, node="n1", is_allocated=True
    )


def write(proc: Path, pid: int, groups: bytes, ticks: int) -> None:
    (proc / str(pid)).mkdir(parents=True)
    fields = f"S 1 0 0 0 -1 4194560 0 0 0 0 0 0 0 0 20 0 1 0 {ticks} 0 0 18446744073709551615"
    (proc / str(pid) / "stat").write_text(f"{pid} (python) {fields}\n")
    (proc / str(pid) / "cgroup").write_bytes(groups)


def test_a_job_whose_environments_are_hidden_is_seen_by_its_control_group(tmp_path: Path) -> None:
    write(tmp_path, 41, SHARED, ticks=200)
    write(tmp_path, 42, SHARED.replace(b"step_batch", b"step_0"), ticks=100)
    write(tmp_path, 43, b"0::/system.slice/sshd.service\n", ticks=1)
    occupancy = Occupancy("host", proc=tmp_path)
    occupancy.refresh()
    assert (occupancy.seen.job_ids, occupancy.seen.ranks, occupancy.seen.unreadable_processes) == (("7",), 0, 3)
    [(record, begun)] = occupancy.records()
    assert (record, begun["job_id"], begun["node"], begun["sampled_as"]) == ("allocation", "7", "node1", "host")
    assert begun["source"] == Source.ENVIRONMENT.value
    for pid in (41, 42):
        for path in (tmp_path / str(pid)).iterdir():
            path.unlink()
        (tmp_path / str(pid)).rmdir()
    occupancy.refresh()
    [(_, ended)] = occupancy.records()
    assert begun.items() < ended.items()
    assert ended.keys() - begun.keys() == {"ended_ns"}
