"""Variables that schedulers put into a job's environment, and the id that their accounts have for it."""

import pytest

from crosswind.ingest.probe.place import Place


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
