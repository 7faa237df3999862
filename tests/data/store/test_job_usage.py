import pytest

from crosswind.data.schema.job import Job
from crosswind.data.store.job_usage import cpu_seconds, limit_seconds, listed_job, peak_memory_bytes


def job(**fields: str) -> Job:
    return Job("lab", "1", cpu_count=4, fields=fields)


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({"TimelimitRaw": "120"}, 7200),  # sacct: minutes
        ({"TimelimitRaw": "UNLIMITED"}, None),
        ({"TimelimitRaw": "Partition_Limit"}, None),
        ({"Timelimit": "1-02:00:00"}, 93_600),
        ({"TimeLimit": "00:30:00"}, 1800),  # scontrol
        ({"Resource_List.walltime": "24:00:00"}, 86_400),  # PBS
        ({"Resource_List.walltime": "3600"}, 3600),
        ({"duration": "60.0"}, 60),  # Flux
        ({"duration": "0.0"}, None),
        ({"requested_seconds": "900"}, 900),  # SWF
        ({"Timelimit": "soon"}, None),
        ({}, None),
    ],
)
def test_the_time_asked_for_is_read_in_the_words_of_each_scheduler(fields: dict[str, str], seconds: float) -> None:
    assert limit_seconds(job(**fields)) == seconds
    assert listed_job(job(**fields)).limit_seconds == seconds


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({"TotalCPU": "00:00.022"}, 0.022),
        ({"TotalCPU": "01:10:00"}, 4200),
        ({"TotalCPU": "2-00:00:00"}, 172_800),
        ({"resources_used.cput": "00:01:30"}, 90),
        ({"cpu_seconds_per_processor": "10.5"}, 42),
        ({"TotalCPU": "INVALID"}, None),
        ({}, None),
    ],
)
def test_processor_time_is_that_of_all_processes(fields: dict[str, str], seconds: float) -> None:
    assert cpu_seconds(job(**fields)) == (None if seconds is None else pytest.approx(seconds))


def test_the_largest_task_is_in_bytes() -> None:
    assert peak_memory_bytes(job(max_rss_bytes="2048")) == 2048
    assert peak_memory_bytes(job()) is None
