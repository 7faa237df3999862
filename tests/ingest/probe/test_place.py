"""Variables that schedulers put into a job's environment, and the id that their accounts have for it."""

import os
import pwd

import pytest

from crosswind.data.schema.access import login_name
from crosswind.ingest.probe.place import Place, owner


@pytest.mark.parametrize(
    ("environment", "job_id"),
    [
        ({"SLURM_JOB_ID": "4711"}, "4711"),
        ({"PBS_JOBID": "4711[3].head.example.org"}, "4711[3].head.example.org"),
        ({"LSB_JOBID": "88"}, "88"),
        ({"LSB_JOBID": "88", "LSB_JOBINDEX": "0"}, "88"),
        ({"LSB_JOBID": "88", "LSB_JOBINDEX": "4"}, "88[4]"),  # as lsb.acct and bacct have it
        ({"LSB_JOBID": "88", "LSB_JOBINDEX": "x"}, "88"),
        ({"LSB_JOBID": "88", "LSB_JOBINDEX": "²"}, "88"),
        ({"FLUX_JOB_ID": "ƒ2oLkTLb"}, "ƒ2oLkTLb"),
        ({"FLUX_JOB_ID": "f2oLkTLb"}, "ƒ2oLkTLb"),  # where the locale has no ƒ
        ({"PBS_JOBID": "f4.head"}, "f4.head"),
        ({"SLURM_JOB_ID": "12", "FLUX_JOB_ID": "ƒ2oLkTLb"}, "12"),  # Flux started inside of Slurm's job
        ({"SLURM_JOB_ID": "", "LSB_JOBID": "88"}, "88"),
        ({"LSB_JOBINDEX": "4"}, None),
        ({}, None),
    ],
)
def test_a_run_has_the_job_id_of_the_schedulers_accounts(environment: dict[str, str], job_id: str | None) -> None:
    assert Place.from_environment(environment).job_id == job_id


@pytest.mark.parametrize(
    ("login", "environment", "expected"),
    [
        ("ann", {}, {"user": "ann"}),
        ("ann", {"SLURM_JOB_USER": "bob", "SLURM_JOB_ACCOUNT": "chem"}, {"user": "ann", "account": "chem"}),
        ("root", {"SLURM_JOB_USER": "bob"}, {"user": "bob"}),  # in a container
        ("1000", {"PBS_O_LOGNAME": "bob"}, {"user": "bob"}),  # a user without a name there
        ("1000", {"LSFUSER": "bob", "LSB_PROJECT_NAME": "chem"}, {"user": "bob", "account": "chem"}),
        ("root", {}, {"user": "root"}),
    ],
)
def test_a_run_belongs_to_whoever_the_kernel_says_runs_it(
    login: str, environment: dict[str, str], expected: dict[str, str]
) -> None:
    assert owner(environment, login) == expected


def test_the_login_name_is_that_of_this_process() -> None:
    assert login_name() == pwd.getpwuid(os.geteuid()).pw_name
