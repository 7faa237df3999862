import os

import pytest

from crosswind.ingest.occupancy.environment import KEPT, MAX_VARIABLES, NOBODY, Identity, identity_of

# A task of `sbatch -N2 -n4 --array=3` under Slurm 22.05, as /proc/<pid>/environ has it, cut to the useful part.
SRUN = (
    b"PATH=/usr/bin\0HOME=/root\0SLURMD_NODENAME=node2\0SLURM_ARRAY_JOB_ID=1\0SLURM_ARRAY_TASK_ID=3\0"
    b"SLURM_CLUSTER_NAME=crosswind\0SLURM_CPUS_ON_NODE=2\0SLURM_JOB_ID=1\0SLURM_LOCALID=1\0SLURM_NTASKS=4\0"
    b"SLURM_PROCID=3\0SLURM_STEP_ID=0\0AWS_SECRET_ACCESS_KEY=hunter2\0"
)


def test_a_task_of_srun_names_its_job_step_rank_and_node() -> None:
    assert identity_of(SRUN) == Identity(
        job_id="1",
        array_id="1_3",
        step_id="0",
        rank=3,
        local_rank=1,
        world_size=4,
        node="node2",
        system="crosswind",
        cpus=2,
        is_allocated=True,
    )


def test_no_other_variable_is_kept() -> None:
    assert "hunter2" not in repr(identity_of(SRUN))
    assert not any(b"SECRET" in name or b"PATH" in name for name in KEPT)


def test_who_carries_nothing_is_nobody() -> None:
    assert identity_of(b"PATH=/bin\0RANKING=1\0RANK\0") is NOBODY
    assert identity_of(b"") is NOBODY


@pytest.mark.parametrize(
    ("environment", "rank", "local_rank", "world_size"),
    [
        (b"RANK=5\0LOCAL_RANK=1\0WORLD_SIZE=8\0SLURM_PROCID=1\0SLURM_LOCALID=0\0SLURM_NTASKS=2", 5, 1, 8),
        (b"OMPI_COMM_WORLD_RANK=2\0OMPI_COMM_WORLD_LOCAL_RANK=0\0OMPI_COMM_WORLD_SIZE=4\0SLURM_PROCID=0", 2, 0, 4),
        (b"PMI_RANK=3\0PMI_SIZE=4\0SLURM_PROCID=0", 3, None, 4),
        (b"PMIX_RANK=1\0SLURM_PROCID=0", 1, None, None),
        (b"SLURM_PROCID=0\0SLURM_NTASKS=1", 0, None, 1),
    ],
)
def test_the_launcher_nearest_to_the_program_numbers_the_ranks(
    environment: bytes, rank: int, local_rank: int | None, world_size: int | None
) -> None:
    identity = identity_of(environment)
    assert (identity.rank, identity.local_rank, identity.world_size) == (rank, local_rank, world_size)


@pytest.mark.parametrize(
    ("environment", "job_id"),
    [
        (b"PBS_JOBID=4711[3].head.example.org", "4711[3].head.example.org"),
        (b"LSB_JOBID=88", "88"),
        ("FLUX_JOB_ID=ƒ2oLkTLb".encode(), "ƒ2oLkTLb"),
        (b"LSB_JOBID=88\0LSB_JOBINDEX=0", "88"),
        (b"LSB_JOBID=88\0LSB_JOBINDEX=4", "88[4]"),
        (b"FLUX_JOB_ID=f2oLkTLb", "ƒ2oLkTLb"),
        (b"SLURM_JOB_ID=12\0PBS_JOBID=13", "12"),
        (b"SLURM_JOB_ID=1,2\0PBS_JOBID=13", "13"),
    ],
)
def test_every_scheduler_names_its_job(environment: bytes, job_id: str) -> None:
    assert identity_of(environment).job_id == job_id


def test_the_shell_of_salloc_on_a_login_node_allocates_nothing_there() -> None:
    assert not identity_of(b"SLURM_JOB_ID=12").is_allocated
    assert identity_of(b"SLURM_JOB_ID=12\0SLURMD_NODENAME=n1").is_allocated
    assert identity_of(b"PBS_JOBID=12").is_allocated


def test_a_prolog_or_epilog_of_a_job_is_not_the_job() -> None:
    # It carries the restart count under another name than the job's own processes.
    script = b"SLURMD_NODENAME=n1\0SLURM_JOB_ID=12\0SLURM_JOB_RESTART_COUNT=1\0SLURM_SCRIPT_CONTEXT=prolog_slurmd"
    assert identity_of(script) is NOBODY


@pytest.mark.parametrize(
    ("value", "gpus"),
    [
        (b"0,1", ("0", "1")),
        (b"GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", ("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6",)),
        (b"-1", ()),
        (b"NoDevFiles", ()),
        (b"", ()),
    ],
)
def test_visible_gpus_are_listed(value: bytes, gpus: tuple[str, ...]) -> None:
    identity = identity_of(b"CUDA_VISIBLE_DEVICES=" + value)
    assert (identity.gpus, identity.refused) == (gpus, ())


@pytest.mark.parametrize(
    "item",
    [
        b"RANK=-1",
        b"RANK=1.5",
        b"RANK=one",
        b"RANK=99999999999999999999",
        b"RANK=4294967296",
        "RANK=٣".encode(),
        b"RANK=\xff\xfe",
        b"SLURM_JOB_ID=1,2",
        b"SLURM_JOB_ID=1\n2",
        b"SLURM_JOB_ID=../../etc",
        b"SLURM_JOB_ID=" + b"9" * 65,
        b"SLURM_JOB_ID=(null)",
        b"SLURMD_NODENAME=a b",
        b"CROSSWIND_RUN_ID=<script>",
        b"CUDA_VISIBLE_DEVICES=0,,1",
        b"CUDA_VISIBLE_DEVICES=" + b",".join([b"0"] * 65),
        b"SLURM_CPUS_ON_NODE=\0SLURM_STEP_ID=" + b"x" * 1_000_000,
    ],
)
def test_a_value_that_does_not_fit_is_left_out_and_named_without_it(item: bytes) -> None:
    identity = identity_of(item)
    [refused] = identity.refused
    assert item.rpartition(b"\0")[2].startswith(refused.encode() + b"=")
    assert identity == Identity(refused=(refused,))


def test_a_refused_value_hides_no_good_one_of_another_launcher() -> None:
    identity = identity_of(b"RANK=x\0SLURM_PROCID=2")
    assert (identity.rank, identity.refused) == (2, ("RANK",))


def test_the_first_of_two_values_counts_as_for_the_program_itself() -> None:
    assert identity_of(b"RANK=1\0RANK=2").rank == 1


def test_bytes_without_sense_are_nobody() -> None:
    assert identity_of(os.urandom(100_000).replace(b"=", b"")) is NOBODY


def test_behind_very_many_variables_nothing_is_looked_at() -> None:
    assert identity_of(b"A=1\0" * (MAX_VARIABLES - 1) + b"RANK=1").rank == 1
    assert identity_of(b"\0" * MAX_VARIABLES + b"RANK=1") is NOBODY
